"""Rewrites of loops and their carries, which `recompute-loops` uses."""
