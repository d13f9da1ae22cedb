"""A cond by a replicated flag, with a psum in one branch, and a switch by `axis_index`, inside the body; the step
number is an integer argument."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N

mesh = M((2, 4), ("d", "m"))
L, D, B = 4, 64, 128
ps = [dict(a=N(2 * i, D, 4 * D), b=N(2 * i + 1, 4 * D, D)) for i in range(L)]
spec = dict(a=P(None, "m"), b=P("m", None))
x = N(99, B, D, scale=1.0)


def block(x, p, step, i):
    h = jax.nn.silu(x @ p["a"])
    h = lax.switch(lax.axis_index("m"), [jnp.sin, jnp.tanh, jax.nn.relu, lambda h: h * h], h)
    y = lax.psum(h @ p["b"], "m")
    return lax.cond(
        (step + i) % 2 == 0,
        lambda x, y: x + jnp.tanh(y) * y,
        lambda x, y: x - lax.pmean(y, "d").mean() * jnp.sin(y),
        x,
        y,
    )


def loss(ps, x, step, remat):
    f = jax.checkpoint(block, static_argnums=(3,)) if remat else block

    def net(ps, x, step):
        for i, p in enumerate(ps):
            with jax.named_scope(f"block{i}"):
                x = f(x, p, step, i)
        return x

    y = jax.shard_map(net, mesh=mesh, in_specs=([spec] * L, P("d"), P()), out_specs=P("d"))(ps, x, step)
    return jnp.mean(y**2)


ARGS = (ps, x, jnp.int32(3))


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
