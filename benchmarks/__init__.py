"""Benchmarks of the passes, the planners and the frontends; README.md lists them."""
