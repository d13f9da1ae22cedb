"""A scan over layers with attention by all_to_all (Ulysses); auxiliary losses are stacked, and the carry has a key and
an integer counter; donated arguments, a loss per layer as result."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((8,), ("s",))
L, D, H, B, T = 4, 32, 8, 2, 128
ps = dict(w=N(1, L, D, 3 * D), o=N(2, L, D, D))
x = N(99, B, T, D, scale=1.0)


def block(x, p, key, n):
    qkv = (x @ p["w"]).reshape(B, T // 8, 3, H, -1)
    qkv = lax.all_to_all(qkv, "s", 3, 1, tiled=True)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    s = jnp.einsum("bthd,bshd->bhts", q, k)
    s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -jnp.inf)
    o = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(s), v)
    o = lax.all_to_all(o, "s", 1, 2, tiled=True).reshape(x.shape)
    m = jax.random.bernoulli(jax.random.fold_in(key, n), 0.9, x.shape)
    y = x + jnp.where(m, o @ p["o"], 0.0)
    return y, lax.psum((y * y).mean(), "s")


def loss(ps, x, key, remat):
    f = ck(remat)(block)

    def net(ps, x, key):
        key = jax.random.fold_in(key, lax.axis_index("s"))

        def body(c, p):
            x, n = c
            y, a = f(x, p, key, n)
            return (y, n + 1), a

        (x, n), a = lax.scan(body, (x, jnp.int32(0)), ps)
        return x, a, n

    y, a, n = jax.shard_map(net, mesh=mesh, in_specs=(P(), P(None, "s"), P()), out_specs=(P(None, "s"), P(), P()))(
        ps, x, key
    )
    return jnp.mean(y**2) + 0.01 * a.sum(), (a, n)


ARGS = (ps, x, jax.random.key(0))


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat), has_aux=True)
