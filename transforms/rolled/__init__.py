"""Loops with other carries: what `recompute-loops` is made of."""
