"""Gradients of `shard_map` on eight devices, written by a hand that had not read the passes; left as they were written.

Each module has `fun(remat)`, the function of the step, with `jax.checkpoint` around its blocks or without, and `ARGS`;
`JIT`, where there is one, is what `jax.jit` is given besides.
"""
