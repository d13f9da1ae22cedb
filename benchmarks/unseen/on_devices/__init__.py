"""Gradients of `shard_map` on eight devices, written by an author who had not read the passes, and left unchanged.

Each module has `fun(remat)`, the function of the step, with `jax.checkpoint` around its blocks or without, and `ARGS`;
`JIT`, where defined, holds further options of `jax.jit`.
"""
