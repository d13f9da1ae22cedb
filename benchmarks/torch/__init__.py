"""Benchmarks of `recompute.torch`; `python -m recompute.benchmarks.torch` compares it with PyTorch's own memory
controls."""
