"""Warnings, errors and remedies of `recompute.jax`, which point to the user's line."""
