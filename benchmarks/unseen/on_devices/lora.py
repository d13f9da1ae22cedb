"""LoRA: gradients of the adapters alone beside frozen weights; a pair of psum_scatter and all_gather per block; folded
dropout keys; loss outside."""

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
L, D, B, T = 4, 64, 8, 32
base = [dict(a=N(2 * i, D, 4 * D), b=N(2 * i + 1, 4 * D, D)) for i in range(L)]
bs = [dict(a=P(None, "c"), b=P("c", None))] * L
lo = [dict(u=N(70 + 2 * i, D, 4), v=N(71 + 2 * i, 4, 4 * D)) for i in range(L)]
ls = [dict(u=P(), v=P(None, "c"))] * L
x = N(99, B, T, D, scale=1.0)


def block(x, p, l, key):
    h = lax.all_gather(x, "c", axis=1, tiled=True)
    h = h @ p["a"] + (h @ l["u"]) @ l["v"]
    key = jax.random.fold_in(jax.random.fold_in(key, lax.axis_index(("a", "b"))), lax.axis_index("c"))
    h = jnp.where(jax.random.bernoulli(key, 0.8, h.shape), jax.nn.silu(h) / 0.8, 0)
    return x + lax.psum_scatter(h @ p["b"], "c", scatter_dimension=1, tiled=True)


def loss(lo, base, key, x, remat):
    f = ck(remat)(block)

    def net(lo, base, key, x):
        ks = jax.random.split(key, L)
        for i in range(L):
            x = f(x, base[i], lo[i], ks[i])
        return x

    y = jax.shard_map(net, mesh=mesh, in_specs=(ls, bs, P(), P(("a", "b"), "c")), out_specs=P(("a", "b"), "c"))(
        lo, base, key, x
    )
    return jnp.mean(y**2)


ARGS = (lo, base, jax.random.key(1), x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
