"""What users write into their models for `recompute.jax`: marks on values, and names of blocks and modules."""
