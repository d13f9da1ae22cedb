"""The whole step inside the `shard_map`: a scan over microbatches, `value_and_grad`, a scan over layers; gradients
summed by an explicit psum (`check_vma=False`), SGD, donated parameters."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((8,), ("d",))
L, D, B, MB = 6, 48, 32, 4
ps = dict(a=N(1, L, D, 4 * D), b=N(2, L, 4 * D, D))
x = N(99, MB, 8 * B, D, scale=1.0)


def block(x, p):
    return x + jnp.tanh(x @ p["a"]) @ p["b"]


def fun(remat):
    f = ck(remat)(block)

    def loss(ps, x):
        return jnp.mean(lax.scan(lambda x, p: (f(x, p), None), x, ps)[0] ** 2)

    def body(ps, xs):
        def mb(c, x):
            l, g = jax.value_and_grad(loss)(ps, x)
            return (c[0] + l, jax.tree.map(jnp.add, c[1], g)), None

        (l, g), _ = lax.scan(mb, (0.0, jax.tree.map(jnp.zeros_like, ps)), xs)
        g = jax.tree.map(lambda g: lax.pmean(g, "d"), g)
        return lax.pmean(l, "d"), jax.tree.map(lambda p, g: p - 0.1 * g, ps, g)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P(None, "d")), out_specs=(P(), P()), check_vma=False)


ARGS = (ps, x)
JIT = dict(donate_argnums=(0,))
