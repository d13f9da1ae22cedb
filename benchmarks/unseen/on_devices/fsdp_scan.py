"""FSDP in a scan over stacked layers: parameters sharded over d by columns and gathered in the body; cast to bf16
inside, loss outside."""

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
L, D, B = 6, 64, 256
ps = dict(a=N(1, L, D, 4 * D), b=N(2, L, 4 * D, D))
x = N(99, B, D, scale=1.0)


def block(x, p):
    a, b = (lax.all_gather(p[k].astype(jnp.bfloat16), "d", axis=0, tiled=True) for k in "ab")
    return x + (jax.nn.relu(x.astype(jnp.bfloat16) @ a) ** 2 @ b).astype(jnp.float32)


def loss(ps, x, remat):
    f = ck(remat)(block)

    def net(ps, x):
        return lax.scan(lambda x, p: (f(x, p), None), x, ps)[0]

    y = jax.shard_map(net, mesh=mesh, in_specs=(P(None, "d"), P("d")), out_specs=P("d"))(ps, x)
    return jnp.mean(y**2)


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
