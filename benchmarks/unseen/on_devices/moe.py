"""A mixture of experts with one expert per device: top-1 routing with capacity, all_to_all both ways, integer and
boolean residuals, an auxiliary loss, and several results."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((8,), ("e",))
E, D, L, B, C = 8, 32, 3, 1024, 24
ps = [dict(r=N(5 * i, D, E, scale=0.5), a=N(5 * i + 1, E, D, 4 * D), b=N(5 * i + 2, E, 4 * D, D)) for i in range(L)]
specs = dict(r=P(), a=P("e"), b=P("e"))
x = N(99, B, D, scale=1.0)


def block(x, p):
    g = jax.nn.softmax(x @ p["r"], -1)
    idx = jnp.argmax(g, -1)
    top = jnp.take_along_axis(g, idx[:, None], 1)[:, 0]
    oh = jax.nn.one_hot(idx, E, dtype=jnp.int32)
    pos = (jnp.cumsum(oh, 0) - 1) * oh
    slot = pos.sum(-1)
    ok = slot < C
    disp = jnp.zeros((E, C, x.shape[1]), x.dtype).at[idx, jnp.where(ok, slot, C)].add(x, mode="drop")
    h = lax.all_to_all(disp, "e", 0, 1, tiled=True)  # (1, 8C, D)
    h = jax.nn.gelu(h[0] @ p["a"][0]) @ p["b"][0]
    h = lax.all_to_all(h.reshape(1, E * C, -1), "e", 1, 0, tiled=True)
    y = jnp.where(ok[:, None], h[idx, jnp.minimum(slot, C - 1)], 0.0) * top[:, None]
    aux = E * jnp.sum(lax.pmean(oh.astype(x.dtype).mean(0), "e") * lax.pmean(g.mean(0), "e"))
    return x + y, (aux, ok.sum())


def loss(ps, x, remat):
    f = ck(remat)(block)

    def net(ps, x):
        aux = 0.0
        kept = []
        for i, p in enumerate(ps):
            with jax.named_scope(f"moe{i}"):
                x, (a, k) = f(x, p)
            aux = aux + a
            kept.append(lax.psum(k, "e"))
        return x, aux, jnp.stack(kept)

    y, aux, kept = jax.shard_map(net, mesh=mesh, in_specs=([specs] * L, P("e")), out_specs=(P("e"), P(), P()))(ps, x)
    return jnp.mean(y**2) + 0.01 * aux, kept


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat), has_aux=True)
