"""Annotations of models for `recompute.jax`: marks on values, and names of blocks and modules."""
