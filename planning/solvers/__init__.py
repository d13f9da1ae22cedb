"""Solvers under a peak-memory budget: which operations run again, and where, at the lowest extra cost."""
