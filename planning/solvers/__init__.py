"""Solvers under a peak-memory budget: which operations run again, and before which others, at the least extra cost."""
