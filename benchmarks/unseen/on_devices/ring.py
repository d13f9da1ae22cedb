"""Ring attention: keys and values move by ppermute in a scan, with the sequence over eight devices; loss outside."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((8,), ("s",))
L, D, H, B, T = 3, 32, 4, 2, 512
ps = [{n: N(10 * i + j, D, D) for j, n in enumerate("qkvo")} for i in range(L)]
x = N(99, B, T, D, scale=1.0)


def ring(q, k, v):
    n = 8
    perm = [(i, (i + 1) % n) for i in range(n)]

    def body(c, _):
        k, v, m, l, o = c
        s = jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(q.shape[-1])
        m2 = jnp.maximum(m, s.max(-1))
        p = jnp.exp(s - m2[..., None])
        a = jnp.exp(m - m2)
        l = l * a + p.sum(-1)
        o = o * a[..., None] + jnp.einsum("bhts,bshd->bhtd", p, v)
        return (lax.ppermute(k, "s", perm), lax.ppermute(v, "s", perm), m2, l, o), None

    z = jnp.einsum("bthd->bht", q) * 0
    m0 = z - 1e30
    o0 = jnp.einsum("bthd->bhtd", q) * 0
    (k, v, m, l, o), _ = lax.scan(body, (k, v, m0, z, o0), None, length=n)
    return jnp.einsum("bhtd->bthd", o / l[..., None])


def block(x, p):
    q, k, v = ((x @ p[n]).reshape(*x.shape[:2], H, -1) for n in "qkv")
    return x + jnp.tanh(ring(q, k, v).reshape(x.shape) @ p["o"])


def loss(ps, x, remat):
    f = ck(remat)(block)

    def net(ps, x):
        for i, p in enumerate(ps):
            with jax.named_scope(f"block{i}"):
                x = f(x, p)
        return x

    y = jax.shard_map(net, mesh=mesh, in_specs=(P(), P(None, "s")), out_specs=P(None, "s"))(ps, x)
    return jnp.mean(jnp.sin(y) ** 2)


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
