"""Memory over time: timelines of live bytes, and a model of XLA:CPU."""
