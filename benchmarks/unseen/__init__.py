"""Training steps written independently of the passes. Benchmarks apply the passes to these steps, which the authors of
the passes had not seen."""
