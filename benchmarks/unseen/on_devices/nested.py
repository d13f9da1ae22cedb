"""Nested `shard_map`: manual over d outside (`axis_names={"d"}`) and over m inside, all under a vmap over an
ensemble."""

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
L, D, B = 3, 32, 128
ps = [dict(a=N(2 * i, D, 4 * D), b=N(2 * i + 1, 4 * D, D)) for i in range(L)]
x = N(99, B, D, scale=1.0)


def inner(x, a, b):
    return lax.psum(jax.nn.gelu(x @ a) @ b, "m")


def block(x, p):
    return x + jax.shard_map(
        jax.checkpoint(inner),
        in_specs=(P(), P(None, "m"), P("m", None)),
        out_specs=P(),
        axis_names={"m"},
        check_vma=True,
    )(jnp.sin(x), p["a"], p["b"])


def loss(ps, x, remat):
    f = ck(remat)(block)

    def net(ps, x):
        for i, p in enumerate(ps):
            with jax.named_scope(f"block{i}"):
                x = f(x, p)
        return x

    y = jax.shard_map(net, mesh=mesh, in_specs=(P(), P("d")), out_specs=P("d"), axis_names={"d"}, check_vma=True)(ps, x)
    return jnp.mean(y**2)


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
