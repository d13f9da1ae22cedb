"""Benchmarks of the memory and FLOPs of examples under XLA:CPU, compared with `jax.checkpoint`."""
