"""Benchmarks of `recompute.torch`; `python -m recompute.benchmarks.torch` compares it with the controls of PyTorch."""
