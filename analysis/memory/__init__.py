"""Memory over time: timelines of live bytes, and the XLA:CPU model."""
