"""A gradient penalty: a second-order gradient through a `shard_map` with a psum inside."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((4, 2), ("d", "m"))
L, D, B = 3, 48, 256
ps = [dict(a=N(2 * i, D, 4 * D), b=N(2 * i + 1, 4 * D, D)) for i in range(L)]
spec = dict(a=P(None, "m"), b=P("m", None))
x = N(99, B, D, scale=1.0)


def block(x, p):
    return x + lax.psum(jnp.tanh(x @ p["a"]) @ p["b"], "m")


def fun(remat):
    f = ck(remat)(block)

    def net(ps, x):
        for i, p in enumerate(ps):
            with jax.named_scope(f"block{i}"):
                x = f(x, p)
        return x

    sm = jax.shard_map(net, mesh=mesh, in_specs=([spec] * L, P("d")), out_specs=P("d"))

    def energy(ps, x):
        return jnp.sum(jnp.tanh(sm(ps, x)))

    def loss(ps, x):
        g = jax.grad(energy, 1)(ps, x)
        return jnp.mean((jnp.linalg.norm(g, axis=-1) - 1) ** 2)

    return jax.value_and_grad(loss)


ARGS = (ps, x)
