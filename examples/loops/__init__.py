"""Training steps with loops. As in `examples/models`, `build(size, checkpoint)` of each module returns a `Step`.

`python benchmarks/loops.py` compares them with `jax.checkpoint` inside the loops; docs/loops.md has the results.
"""
