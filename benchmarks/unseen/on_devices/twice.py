"""Values returned twice, an input returned unchanged, a data-dependent scale by pmax as residual, several results,
gradients of parameters and input, and two losses outside."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((2, 2, 2), ("a", "b", "c"))
L, D, B = 4, 64, 256
ps = [dict(w=N(i, D, D, scale=0.2), s=jnp.float32(1.0 + i / 10)) for i in range(L)]
x = N(99, B, D, scale=1.0)


def block(x, p):
    y = jnp.tanh(x @ p["w"]) * p["s"]
    sc = lax.pmax(lax.stop_gradient(jnp.abs(y).max()), ("a", "b", "c"))
    t = lax.psum(jnp.sum(y), ("a", "b")) / 1e3
    return x + jnp.sin(y / sc) * t, t


def loss(ps, x, remat):
    f = ck(remat)(block)

    def net(ps, x):
        ts = []
        x0 = x
        for i, p in enumerate(ps):
            with jax.named_scope(f"block{i}"):
                x, t = f(x, p)
            ts.append(lax.pmean(t, "c"))
        return x, x, x0, jnp.stack(ts), lax.psum((x * x).sum(), ("a", "b", "c"))

    o = P(("a", "b", "c"))
    y, y2, x0, ts, n = jax.shard_map(net, mesh=mesh, in_specs=(P(), o), out_specs=(o, o, o, P(), P()))(ps, x)
    return jnp.mean(y * jnp.cos(y2)) + 1e-3 * jnp.sum(ts**2) + 1e-6 * n + jnp.mean(x0 * y), (y, y2, ts)


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat), argnums=(0, 1), has_aux=True)
