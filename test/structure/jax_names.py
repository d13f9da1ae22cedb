"""The names of the programs in `jax_programs.py`, for those who do not import JAX."""

JAX_PROGRAMS = tuple(
    """
    mlp scan cond switch loop dropout bits ordered table convolution spectrum calls checkpoint sharded constrained
    update half
    """.split()
)
