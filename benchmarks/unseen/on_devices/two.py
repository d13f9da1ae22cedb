"""Two different `shard_map`s, attention over heads and an MLP over data, with ordinary layers between them; a
checkpoint per block."""

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
L, D, H, B, T = 3, 64, 8, 8, 32
ps = [
    dict(q=N(9 * i, D, 3 * D), o=N(9 * i + 1, D, D), g=jnp.ones(D), a=N(9 * i + 2, D, 4 * D), b=N(9 * i + 3, 4 * D, D))
    for i in range(L)
]
x = N(99, B, T, D, scale=1.0)


def ln(x, g):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g


@functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("d", None, "m"),) * 3, out_specs=P("d", None, "m"))
def attn(q, k, v):
    s = jnp.einsum("bthd,bshd->bhts", q, k) / 3.0
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e9)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(s), v)


@functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("d", "m"), P(), P()), out_specs=P("d", "m"))
def mlp(x, a, b):
    return jax.nn.silu(x @ a) @ b


def block(x, p):
    q, k, v = jnp.split((ln(x, p["g"]) @ p["q"]).reshape(B, T, H, -1), 3, -1)
    x = x + jnp.tanh(attn(q, k, v).reshape(x.shape) @ p["o"])
    return x + mlp(ln(x, p["g"]), p["a"], p["b"])


def loss(ps, x, remat):
    f = ck(remat)(block)
    for i, p in enumerate(ps):
        with jax.named_scope(f"block{i}"):
            x = f(x, p)
    return jnp.mean(x**2)


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
