"""A pipeline of eight stages: microbatches move by ppermute in a scan over ticks; stages read `axis_index`; loss
outside."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((8,), ("p",))
S, D, Mb, B = 8, 48, 8, 32
ps = dict(a=N(1, S, 2, D, 4 * D), b=N(2, S, 2, 4 * D, D))
x = N(99, Mb, B, D, scale=1.0)


def stage(p, x):
    for i in range(2):
        x = x + jnp.tanh(x @ p["a"][0, i]) @ p["b"][0, i]
    return x


def loss(ps, x, remat):
    f = ck(remat)(stage)

    def net(ps, x):
        i = lax.axis_index("p")
        first = i == 0
        last = i == S - 1

        def tick(c, t):
            st, out = c
            inp = jnp.where(first, lax.dynamic_index_in_dim(x, jnp.minimum(t, Mb - 1), 0, False), st)
            y = f(ps, inp)
            k = jnp.clip(t - (S - 1), 0, Mb - 1)
            out = jnp.where(last & (t >= S - 1), lax.dynamic_update_index_in_dim(out, y, k, 0), out)
            return (lax.ppermute(y, "p", [(j, (j + 1) % S) for j in range(S)]), out), None

        z = lax.pcast(jnp.zeros_like(x[0]), ("p",), to="varying")
        zo = lax.pcast(jnp.zeros_like(x), ("p",), to="varying")
        (_, out), _ = lax.scan(tick, (z, zo), jnp.arange(Mb + S - 1))
        return lax.psum(jnp.where(last, out, 0.0), "p")

    y = jax.shard_map(net, mesh=mesh, in_specs=(P("p"), P()), out_specs=P())(ps, x)
    return jnp.mean(y**2)


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
