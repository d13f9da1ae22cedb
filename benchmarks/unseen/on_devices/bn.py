"""A convolutional network with synchronized batch norm (pmean) on a 2x2x2 mesh: batch over two axes, channels
replicated; running statistics are auxiliary results."""

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
L, C, B = 4, 16, 64
R = ("a", "b", "c")
ps = [dict(w=N(i, 3, 3, C, C), g=jnp.ones(C), b=jnp.zeros(C)) for i in range(L)]
st = [dict(m=jnp.zeros(C), v=jnp.ones(C)) for i in range(L)]
x = N(99, B, 16, 16, C, scale=1.0)


def block(x, p, s):
    y = lax.conv_general_dilated(x, p["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    m = lax.pmean(y.mean((0, 1, 2)), R)
    v = lax.pmean((y * y).mean((0, 1, 2)), R) - m * m
    new = dict(m=0.9 * s["m"] + 0.1 * m, v=0.9 * s["v"] + 0.1 * v)
    return x + jax.nn.relu((y - m) * lax.rsqrt(v + 1e-5) * p["g"] + p["b"]), new


def loss(ps, st, x, remat):
    f = ck(remat)(block)

    def net(ps, st, x):
        new = []
        for i, (p, s) in enumerate(zip(ps, st)):
            with jax.named_scope(f"block{i}"):
                x, n = f(x, p, s)
                new.append(n)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return lax.pmean((x.mean((1, 2)) ** 2).mean(), R), new

    return jax.shard_map(net, mesh=mesh, in_specs=(P(), P(), P(R)), out_specs=(P(), P()))(ps, st, x)


ARGS = (ps, st, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat), has_aux=True)
