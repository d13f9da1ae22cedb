"""Steps with gradients of `shard_map` on eight devices, by an author who had not read the passes.

The names in the sources have been made readable since then, but each module still lowers to the same text. Each module
defines `build_step(remat)`, which returns the step's function with or without `jax.checkpoint` around its blocks, and
`ARGUMENTS`. Some modules define `JIT_OPTIONS`, with options of `jax.jit`.
"""
