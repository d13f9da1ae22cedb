"""Rewrites of loops and their carries: the parts of `recompute-loops`."""
