"""Partly manual axes: `axis_names={"d"}`, with m left to the partitioner by shardings of the parameters; sums of
gradients over d are automatic; loss outside."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((4, 2), ("d", "m"))
L, D, B, T = 4, 32, 32, 32
ps = [dict(a=N(2 * i, D, 4 * D), b=N(2 * i + 1, 4 * D, D)) for i in range(L)]
ps = [
    dict(
        a=jax.device_put(p["a"], NamedSharding(mesh, P(None, "m"))),
        b=jax.device_put(p["b"], NamedSharding(mesh, P("m", None))),
    )
    for p in ps
]
x = N(99, B, T, D, scale=1.0)


def block(x, p):
    c = lax.psum(jnp.sum(x, axis=(0, 1)), "d") / (B * T)
    return x + jax.nn.gelu((x - c) @ p["a"]) @ p["b"]


def loss(ps, x, remat):
    f = ck(remat)(block)

    def net(ps, x):
        for i, p in enumerate(ps):
            with jax.named_scope(f"block{i}"):
                x = f(x, p)
        return x

    y = jax.shard_map(net, mesh=mesh, in_specs=(P(), P("d")), out_specs=P("d"), axis_names={"d"})(ps, x)
    return jnp.mean(jnp.cos(y))


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
