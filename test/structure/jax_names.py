"""Names of the programs in `jax_programs.py`, for tests that do not import JAX."""

JAX_PROGRAMS = tuple(
    """
    mlp scan cond switch loop dropout bits ordered table convolution spectrum calls checkpoint sharded constrained
    update half
    """.split()
)
