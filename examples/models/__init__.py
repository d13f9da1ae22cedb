"""Training steps in plain JAX that demonstrate and test the project.

Each module builds a `Step`: the function to lower, the shapes of its arguments, and the arguments that it donates.
`jax.named_scope` names the blocks. With `checkpoint=True` every block is wrapped in `jax.checkpoint`, for comparison
with the recomputation of this project.
"""
