"""Benchmarks that measure the time of the passes, of the JAX bridge and of the first compilation."""
