"""Microbatches accumulated by a scan around `value_and_grad`; layers in a scan, each one `shard_map` with a psum."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((2, 4), ("d", "m"))
L, D, B, MB = 6, 48, 64, 4
ps = dict(a=N(1, L, D, 4 * D), b=N(2, L, 4 * D, D))
x = N(99, MB, B, D, scale=1.0)


@functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("d"), dict(a=P(None, "m"), b=P("m", None))), out_specs=P("d"))
def layer(x, p):
    return x + lax.psum(jax.nn.gelu(jnp.sin(x) @ p["a"]) @ p["b"], "m")


def loss(ps, x, remat):
    f = ck(remat)(layer)
    x, _ = lax.scan(lambda x, p: (f(x, p), None), x, ps)
    return jnp.mean(x**2)


def fun(remat):
    vg = jax.value_and_grad(functools.partial(loss, remat=remat))

    def step(ps, xs):
        def mb(c, x):
            l, g = vg(ps, x)
            return (c[0] + l, jax.tree.map(jnp.add, c[1], g)), l

        return lax.scan(mb, (0.0, jax.tree.map(jnp.zeros_like, ps)), xs)

    return step


ARGS = (ps, x)
