"""Training steps with loops. As in `examples/models`, each module has a function `build(size, checkpoint)`.

`python -m recompute.benchmarks.xla_memory.loop_remat` compares them with `jax.checkpoint` inside the loops.
docs/measured/loops.md lists the results.
"""
