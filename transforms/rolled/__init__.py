"""Rewrite loops and their carries for `recompute-loops`."""
