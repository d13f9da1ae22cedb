"""Training steps grouped by their structure; `python -m recompute.benchmarks.families` measures them."""
