"""Benchmark of the rounding of XLA:CPU, which differs between forms of a step."""
