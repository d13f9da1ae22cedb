"""A vmap over an ensemble of `shard_map`s with U-shaped skips across blocks: halo exchange by ppermute, convolutions
over a sharded sequence, and a sort in a block."""

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
L, C, B, T = 4, 16, 8, 256
ps = [dict(w=N(i, 3, C, C, scale=0.3), u=N(50 + i, 2 * C, C, scale=0.3)) for i in range(L)]
x = N(99, 2, B, T, C, scale=1.0)


def conv(x, w):
    l = lax.ppermute(x[:, -1:], "s", [(i, (i + 1) % 8) for i in range(8)])
    r = lax.ppermute(x[:, :1], "s", [(i, (i - 1) % 8) for i in range(8)])
    return lax.conv_general_dilated(
        jnp.concatenate([l, x, r], 1), w, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
    )


def down(x, w):
    return jax.nn.elu(conv(x, w))


def up(x, s, u):
    return jnp.sort(jnp.concatenate([x, s], -1), axis=-1) @ u + s


def loss(ps, x, remat):
    dn = ck(remat)(down)
    u = ck(remat)(up)

    def net(ps, x):
        sk = []
        for i, p in enumerate(ps):
            with jax.named_scope(f"down{i}"):
                sk.append(x)
                x = dn(x, p["w"])
        for i, (p, s) in enumerate(zip(ps[::-1], sk[::-1])):
            with jax.named_scope(f"up{i}"):
                x = u(x, s, p["u"])
        return x

    f = jax.shard_map(net, mesh=mesh, in_specs=(P(), P(None, "s")), out_specs=P(None, "s"))
    return jnp.mean(jax.vmap(f, (None, 0))(ps, x) ** 2)


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
