"""FSDP: parameters sharded by rows and gathered inside each block, so that their gradient is a reduce_scatter; the
batch is sharded, and the loss inside."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((8,), ("d",))
L, D, B = 5, 64, 512
ps = [dict(a=N(3 * i, D, 4 * D), b=N(3 * i + 1, 4 * D, D), g=N(3 * i + 2, D) + 1) for i in range(L)]
x = N(99, B, D, scale=1.0)
t = N(98, B, D, scale=1.0)


def block(x, p):
    w = {k: lax.all_gather(v, "d", tiled=True) for k, v in p.items()}
    h = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w["g"]
    return x + jax.nn.silu(h @ w["a"]) @ w["b"]


def loss(ps, x, t, remat):
    f = ck(remat)(block)

    def net(ps, x, t):
        for i, p in enumerate(ps):
            with jax.named_scope(f"block{i}"):
                x = f(x, p)
        return lax.pmean(jnp.mean((x - t) ** 2), "d")

    return jax.shard_map(net, mesh=mesh, in_specs=(P("d"), P("d"), P("d")), out_specs=P())(ps, x, t)


ARGS = (ps, x, t)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
