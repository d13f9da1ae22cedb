"""Dropout with keys folded by `axis_index` on a 1x8 mesh: sequence and tensor parallel, no named scopes, the loss
inside, integer labels."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((1, 8), ("d", "m"))
L, D, B = 5, 64, 128
ps = [dict(a=N(2 * i, D, 8 * D), b=N(2 * i + 1, 8 * D, D)) for i in range(L)]
spec = dict(a=P(None, "m"), b=P("m", None))
x = N(99, B, D, scale=1.0)
lab = jnp.arange(B) % D


def drop(key, x):
    m = jax.random.bernoulli(key, 0.9, x.shape)
    return jnp.where(m, x / 0.9, 0.0)


def block(x, p, key):
    h = drop(jax.random.fold_in(key, lax.axis_index("m")), jax.nn.relu(x @ p["a"]))
    return x + drop(jax.random.fold_in(key, 77), lax.psum(h @ p["b"], "m"))


def loss(ps, key, x, lab, remat):
    f = ck(remat)(block)

    def net(ps, key, x, lab):
        key = jax.random.fold_in(key, lax.axis_index("d"))
        for i, p in enumerate(ps):
            x = f(x, p, jax.random.fold_in(key, i))
        ll = jax.nn.log_softmax(x)
        return lax.pmean(-jnp.take_along_axis(ll, lab[:, None], 1).mean(), "d")

    return jax.shard_map(net, mesh=mesh, in_specs=([spec] * L, P(), P("d"), P("d")), out_specs=P(), check_vma=False)(
        ps, key, x, lab
    )


ARGS = (ps, jax.random.key(3), x, lab)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
