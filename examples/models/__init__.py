"""The training steps that the project is shown and tested on, in plain JAX.

Each module builds a `Step`: the function to lower, the shapes of its arguments and what it donates.
`jax.named_scope` names the blocks; with `checkpoint=True` every block is wrapped in `jax.checkpoint`,
which is what our own result is compared with.
"""
