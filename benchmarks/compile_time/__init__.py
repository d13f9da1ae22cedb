"""Benchmarks of the time of the passes, the JAX bridge and the first compilation."""
