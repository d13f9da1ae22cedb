"""Rewrites of loops and their carries, on which `recompute-loops` is built."""
