"""Gradients of `shard_map` on eight devices, by an author who had not read the passes.

The programs were left unchanged: names in the source have been made readable since, and each module still lowers to the
same text. Each module has `build_step(remat)`, the function of the step, with `jax.checkpoint` around its blocks or
without, and `ARGUMENTS`; `JIT_OPTIONS`, where defined, holds further options of `jax.jit`.
"""
