"""Sequence parallelism in bf16: an all_gather before and a psum_scatter after each pair of products; `check_vma=False`;
the f32 parameters are cast outside, and the loss is outside in f32."""

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
L, D, B, T = 4, 64, 8, 64
ps = [dict(a=N(2 * i, D, 8 * D), b=N(2 * i + 1, 8 * D, D), s=jnp.ones(D)) for i in range(L)]
spec = dict(a=P(None, "m"), b=P("m", None), s=P())
x = N(99, B, T, D, scale=1.0)


def block(x, p):
    h = x * lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2, -1, keepdims=True) + 1e-6).astype(x.dtype) * p["s"]
    h = lax.all_gather(h, "m", axis=1, tiled=True)
    h = jax.nn.gelu(h @ p["a"])
    return x + lax.psum_scatter(h @ p["b"], "m", scatter_dimension=1, tiled=True)


def loss(ps, x, remat):
    ps = jax.tree.map(lambda a: a.astype(jnp.bfloat16), ps)
    f = ck(remat)(block)

    def net(ps, x):
        for i, p in enumerate(ps):
            with jax.named_scope(f"layer_{i}"):
                x = f(x, p)
        return x

    y = jax.shard_map(net, mesh=mesh, in_specs=([spec] * L, P("d", "m")), out_specs=P("d", "m"), check_vma=False)(
        ps, x.astype(jnp.bfloat16)
    )
    return jnp.mean(y.astype(jnp.float32) ** 2)


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
