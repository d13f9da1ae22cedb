"""Training steps in plain JAX, as examples and for tests.

Each module builds a `Step`: the function to lower, the shapes of its arguments, and the arguments that it donates.
`jax.named_scope` names the blocks. With `checkpoint=True`, every block is wrapped in `jax.checkpoint`, so that the
effect can be compared with recomputation by this compiler.
"""
