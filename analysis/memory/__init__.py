"""Memory over time: timelines of live bytes, peak forecasts, and a model of XLA:CPU."""
