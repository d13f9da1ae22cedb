"""A cond around a `shard_map` (layer drop) and a layer of complex FFTs with all_to_all; gradients by `jax.vjp`, whose
cotangent is an argument."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((8,), ("s",))
L, B, T, C = 4, 4, 128, 32
ps = [dict(w=N(i, C, C, scale=0.3), f=N(50 + i, T, C)) for i in range(L)]
x = N(99, B, T, C, scale=1.0)


def mix(x, w, f):
    z = lax.all_to_all(x, "s", 2, 1, tiled=True)  # B,T,C/8
    z = jnp.fft.ifft(jnp.fft.fft(z.astype(jnp.complex64), axis=1) * jnp.exp(1j * f)[None], axis=1).real
    z = lax.all_to_all(z, "s", 1, 2, tiled=True)
    return jnp.tanh(z @ w)


sm = jax.shard_map(mix, mesh=mesh, in_specs=(P(None, "s"), P(), P(None, "s")), out_specs=P(None, "s"))


def block(x, p, on):
    return lax.cond(on, lambda x: x + sm(x, p["w"], p["f"]), lambda x: x * 0.5, x)


def fun(remat):
    f = ck(remat)(block)

    def net(ps, x, on):
        for i, p in enumerate(ps):
            with jax.named_scope(f"block{i}"):
                x = f(x, p, on[i])
        return x

    def step(ps, x, on, ct):
        y, vjp = jax.vjp(lambda ps, x: net(ps, x, on), ps, x)
        return y, vjp(ct)

    return step


ARGS = (ps, x, jnp.array([1, 0, 1, 1], bool), N(97, B, T, C))
