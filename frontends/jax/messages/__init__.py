"""Warnings, errors and remedies of `recompute.jax`. They point to the user's line."""
