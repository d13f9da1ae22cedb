"""A deep equilibrium: a `fori_loop` with psum and without gradient, then one differentiable iteration; also blocks with
a `fori_loop` of static length, and an inner `jax.checkpoint` with a policy in both variants."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((4, 2), ("d", "m"))
L, D, B = 4, 64, 256
ps = [dict(a=N(2 * i, D, 4 * D), b=N(2 * i + 1, 4 * D, D)) for i in range(L)]
spec = dict(a=P(None, "m"), b=P("m", None))
x = N(99, B, D, scale=1.0)


@functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
def ff(x, p):
    return jax.nn.gelu(jax.nn.gelu(x @ p["a"]) * 2.0) @ p["b"]


def block(x, p):
    z = lax.fori_loop(0, 3, lambda _, z: jnp.tanh(lax.psum(ff(z, p), "m") + x), lax.stop_gradient(x))
    return x + lax.psum(ff(z, p), "m")


def loss(ps, x, remat):
    f = ck(remat)(block)

    def net(ps, x):
        for p in ps:
            x = f(x, p)
        return x

    y = jax.shard_map(net, mesh=mesh, in_specs=([spec] * L, P("d")), out_specs=P("d"))(ps, x)
    return jnp.mean(jnp.log1p(y * y))


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
