"""A mesh with explicit axis types, set by `jax.set_mesh`, and a `shard_map` without a mesh argument, in a model with
explicit shardings outside."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from .given import N, ck

mesh = jax.make_mesh((4, 2), ("d", "m"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)
L, D, B = 4, 64, 256
put = lambda a, s: jax.device_put(a, NamedSharding(mesh, s))
ps = [dict(a=put(N(2 * i, D, 4 * D), P(None, "m")), b=put(N(2 * i + 1, 4 * D, D), P("m", None))) for i in range(L)]
x = put(N(99, B, D, scale=1.0), P("d"))


def inner(x, a, b):
    return lax.psum(jax.nn.gelu(x @ a) @ b, "m")


def block(x, p):
    y = jax.shard_map(inner, in_specs=(P("d"), P(None, "m"), P("m", None)), out_specs=P("d"))(
        jnp.sin(x), p["a"], p["b"]
    )
    return x + jnp.tanh(y)


def loss(ps, x, remat):
    f = ck(remat)(block)
    for i, p in enumerate(ps):
        with jax.named_scope(f"block{i}"):
            x = f(x, p)
    return jnp.mean(x**2)


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
