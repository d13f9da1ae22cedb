"""The options of `recompute.jax.jit` and its relatives, and the checks of their values."""
