"""Solvers that choose the operations to recompute, and where their copies run, at the lowest extra cost within a
peak-memory budget."""
