"""`value_and_grad` inside the `shard_map`, with tensor-parallel psums in blocks; Adam inside on sharded, donated state
(ZeRO-1: gradients by psum_scatter, parameters by all_gather)."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((4, 2), ("d", "m"))
L, D, B = 4, 64, 256
ps = [dict(a=N(2 * i, D, 8 * D), b=N(2 * i + 1, 8 * D, D)) for i in range(L)]
spec = [dict(a=P(None, "m"), b=P("m", None))] * L
x = N(99, B, D, scale=1.0)
t = N(98, B, D, scale=1.0)
mu = jax.tree.map(jnp.zeros_like, ps)
nu = jax.tree.map(jnp.ones_like, ps)
ospec = [dict(a=P("d", "m"), b=P(("m", "d"), None))] * L


def block(x, p):
    return x + lax.psum(jax.nn.gelu(x @ p["a"]) @ p["b"], "m")


def fun(remat):
    f = ck(remat)(block)

    def loss(ps, x, t):
        for i, p in enumerate(ps):
            with jax.named_scope(f"block{i}"):
                x = f(x, p)
        return jnp.mean((x - t) ** 2)

    def body(ps, mu, nu, x, t, n):
        vp = jax.tree.map(lambda p: lax.pcast(p, ("d",), to="varying"), ps)
        l, g = jax.value_and_grad(loss)(vp, x, t)
        g = jax.tree.map(lambda g: lax.psum_scatter(g, "d", scatter_dimension=0, tiled=True) / 4, g)
        mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mu, g)
        nu = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, nu, g)
        k = lax.axis_index("d")

        def up(p, m, v):
            s = p.shape[0] // 4
            q = lax.dynamic_slice_in_dim(p, k * s, s, 0) - 0.01 * m / (jnp.sqrt(v) + 1e-8)
            return (
                lax.all_gather_invariant(q, "d", tiled=True)
                if hasattr(lax, "all_gather_invariant")
                else lax.psum(
                    lax.dynamic_update_slice_in_dim(lax.pcast(jnp.zeros_like(p), ("d",), to="varying"), q, k * s, 0),
                    "d",
                )
            )

        return jax.tree.map(up, ps, mu, nu), mu, nu, lax.pmean(l, "d"), n + 1

    return jax.shard_map(
        body, mesh=mesh, in_specs=(spec, ospec, ospec, P("d"), P("d"), P()), out_specs=(spec, ospec, ospec, P(), P())
    )


ARGS = (ps, mu, nu, x, t, jnp.int32(0))
JIT = dict(donate_argnums=(0, 1, 2))
