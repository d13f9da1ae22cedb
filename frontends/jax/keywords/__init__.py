"""The options of `recompute.jax.jit` and of the wrappers for flax nnx and equinox, and the checks of their values."""
