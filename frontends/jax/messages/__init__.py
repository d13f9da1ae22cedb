"""Warnings, errors and remedies of `recompute.jax`, which point to lines of the user's code."""
