"""Two stacked GRU-like layers with a sharded hidden state, gathered at every step of a scan inside the `shard_map`; the
loss is outside, on the whole sequence."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((8,), ("m",))
L, D, B, T = 2, 64, 16, 48
ps = [
    dict(wx=N(3 * i, D, 3 * D, scale=0.2).reshape(D, 3, D), wh=N(3 * i + 1, D, 3 * D, scale=0.2).reshape(D, 3, D))
    for i in range(L)
]
sp = dict(wx=P(None, None, "m"), wh=P(None, None, "m"))
x = N(99, T, B, D, scale=1.0)


def cell(h, x, p):
    hf = lax.all_gather(h, "m", axis=1, tiled=True)
    gx = jnp.einsum("bd,dgk->bgk", x, p["wx"])
    gh = jnp.einsum("bd,dgk->bgk", hf, p["wh"])
    r = jax.nn.sigmoid(gx[:, 0] + gh[:, 0])
    z = jax.nn.sigmoid(gx[:, 1] + gh[:, 1])
    n = jnp.tanh(gx[:, 2] + r * gh[:, 2])
    return (1 - z) * n + z * h


def loss(ps, x, remat):
    f = ck(remat)(cell)

    def net(ps, x):
        for p in ps:
            h0 = lax.pcast(jnp.zeros((B, D // 8)), ("m",), to="varying")
            _, hs = lax.scan(lambda h, x: (lambda n: (n, n))(f(h, x, p)), h0, x)
            x = lax.all_gather(hs, "m", axis=2, tiled=True)
        return hs

    y = jax.shard_map(net, mesh=mesh, in_specs=([sp] * L, P()), out_specs=P(None, None, "m"))(ps, x)
    return jnp.mean(y**2)


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
