"""A whole optimizer step: the gradient of a `shard_map`, then optax's AdamW with clipping by global norm; donated
state."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

# whole optimizer step: grad outside the shard_map, optax.adamw with global-norm clip, donated state, out: metrics; loss inside
mesh = M((4, 2), ("d", "m"))
L, D, B = 4, 64, 256
ps = [dict(a=N(2 * i, D, 8 * D), b=N(2 * i + 1, 8 * D, D), g=jnp.ones(D)) for i in range(L)]
spec = [dict(a=P(None, "m"), b=P("m", None), g=P())] * L
x = N(99, B, D, scale=1.0)
t = N(98, B, D, scale=1.0)
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
st = tx.init(ps)


def block(x, p):
    h = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * p["g"]
    return x + lax.psum(jax.nn.gelu(h @ p["a"]) @ p["b"], "m")


def fun(remat):
    f = ck(remat)(block)

    def net(ps, x, t):
        for p in ps:
            x = f(x, p)
        return lax.pmean(jnp.mean((x - t) ** 2), "d")

    loss = jax.shard_map(net, mesh=mesh, in_specs=(spec, P("d"), P("d")), out_specs=P())

    def step(ps, st, x, t):
        l, g = jax.value_and_grad(loss)(ps, x, t)
        u, st = tx.update(g, st, ps)
        return optax.apply_updates(ps, u), st, dict(loss=l, norm=optax.global_norm(g))

    return step


ARGS = (ps, st, x, t)
JIT = dict(donate_argnums=(0, 1))
