"""Memory over time: timelines of live bytes, schedules with a low peak, peak forecasts, and a model of XLA:CPU."""
