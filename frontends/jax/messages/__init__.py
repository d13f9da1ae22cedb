"""Warnings, errors and remedies of `recompute.jax`, at the line of the user."""
