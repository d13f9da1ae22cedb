"""A flax linen module inside the body: data parallel batch norm and dropout, with the mutable statistics as auxiliary
results."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N

# flax linen module applied inside, data parallel, batch_stats with axis_name, dropout rng, nn.scan-free; loss inside, value_and_grad outside, has_aux mutable state
mesh = M((8,), ("d",))
L, D, B = 4, 64, 512


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.BatchNorm(use_running_average=False, axis_name="d" if not self.is_initializing() else None)(x)
        h = nn.gelu(nn.Dense(4 * D)(h))
        h = nn.Dropout(0.1, deterministic=False)(h)
        return x + nn.Dense(D)(h)


class Net(nn.Module):
    remat: bool = False

    @nn.compact
    def __call__(self, x):
        Bk = nn.remat(Block) if self.remat else Block
        for i in range(L):
            x = Bk(name=f"block{i}")(x)
        return x


x = N(99, B, D, scale=1.0)
V = Net().init(dict(params=jax.random.key(0), dropout=jax.random.key(1)), x[:4])


def loss(ps, bs, key, x, remat):
    def net(ps, bs, key, x):
        k = jax.random.fold_in(key, lax.axis_index("d"))
        y, s = Net(remat).apply(dict(params=ps, batch_stats=bs), x, rngs=dict(dropout=k), mutable=["batch_stats"])
        return lax.pmean(jnp.mean(y**2), "d"), jax.tree.map(lambda a: lax.pmean(a, "d"), s["batch_stats"])

    return jax.shard_map(net, mesh=mesh, in_specs=(P(), P(), P(), P("d")), out_specs=(P(), P()), check_vma=False)(
        ps, bs, key, x
    )


ARGS = (V["params"], V["batch_stats"], jax.random.key(7), x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat), has_aux=True)
