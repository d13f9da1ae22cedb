"""Forecasts of the peak memory of a step on each kind of executor, unchanged or under a plan."""
