"""Steps with loops, as `jax.jit` gets them: `build(size, checkpoint)` gives a `Step` each, as in `examples/models`.

`python benchmarks/loops.py` measures them beside `jax.checkpoint` inside of the loops; docs/loops.md says what happens.
"""
