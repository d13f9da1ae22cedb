"""Two gradients in one step: generator and discriminator of a GAN, each a `shard_map`, with `stop_gradient`."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((8,), ("d",))
L, D, B = 3, 48, 512
mk = lambda s: [dict(a=N(s + 2 * i, D, 4 * D), b=N(s + 2 * i + 1, 4 * D, D)) for i in range(L)]


def block(x, p):
    return x + jnp.tanh(x @ p["a"]) @ p["b"]


def fun(remat):
    f = ck(remat)(block)

    def net(n):
        def go(ps, x):
            for i, p in enumerate(ps):
                with jax.named_scope(f"{n}{i}"):
                    x = f(x, p)
            return x

        return jax.shard_map(go, mesh=mesh, in_specs=(P(), P("d")), out_specs=P("d"))

    G, Dn = net("gen"), net("dis")

    def gl(g, d, z):
        return -jnp.mean(jax.nn.log_sigmoid(Dn(d, G(g, z)).sum(-1)))

    def dl(d, g, z, x):
        return -jnp.mean(
            jax.nn.log_sigmoid(Dn(d, x).sum(-1)) + jax.nn.log_sigmoid(-Dn(d, lax.stop_gradient(G(g, z))).sum(-1))
        )

    def step(g, d, z, x):
        a, ga = jax.value_and_grad(gl)(g, d, z)
        b, gb = jax.value_and_grad(dl)(d, g, z, x)
        up = lambda p, q: jax.tree.map(lambda p, q: p - 0.1 * q, p, q)
        return up(g, ga), up(d, gb), a, b

    return step


ARGS = (mk(0), mk(100), N(98, B, D, scale=1.0), N(99, B, D, scale=1.0))
