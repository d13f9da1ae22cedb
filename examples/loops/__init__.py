"""Training steps with loops. As in `examples/models`, `build(size, checkpoint)` of each module returns a `Step`.

`python -m recompute.benchmarks.loops` compares them with `jax.checkpoint` inside the loops;
docs/measured/loops.md has the results.
"""
