"""Several training steps in one jit: a scan over steps, each the gradient of a `shard_map` with momentum; donated
carry."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((4, 2), ("d", "m"))
L, D, B, S = 4, 48, 256, 3
ps = [dict(a=N(2 * i, D, 4 * D), b=N(2 * i + 1, 4 * D, D)) for i in range(L)]
spec = [dict(a=P(None, "m"), b=P("m", None))] * L
x = N(99, S, B, D, scale=1.0)


def block(x, p):
    return x + lax.psum(jax.nn.gelu(x @ p["a"]) @ p["b"], "m")


def fun(remat):
    f = ck(remat)(block)

    def net(ps, x):
        for i, p in enumerate(ps):
            with jax.named_scope(f"block{i}"):
                x = f(x, p)
        return lax.pmean((x**2).mean(), "d")

    loss = jax.shard_map(net, mesh=mesh, in_specs=(spec, P("d")), out_specs=P())

    def train(ps, mo, xs):
        def train_step(c, x):
            ps, mo = c
            l, g = jax.value_and_grad(loss)(ps, x)
            mo = jax.tree.map(lambda m, g: 0.9 * m + g, mo, g)
            return (jax.tree.map(lambda p, m: p - 0.01 * m, ps, mo), mo), l

        return lax.scan(train_step, (ps, mo), xs)

    return train


ARGS = (ps, jax.tree.map(jnp.zeros_like, ps), x)
JIT = dict(donate_argnums=(0, 1))
