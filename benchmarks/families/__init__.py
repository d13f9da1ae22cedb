"""Training steps by family of structure; `python -m recompute.benchmarks.families` measures them."""
