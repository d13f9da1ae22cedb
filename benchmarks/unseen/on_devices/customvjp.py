"""Megatron's f and g operators as `custom_vjp` inside the body (identity forward and psum backward, and the reverse),
straight-through int8 quantization, and a `custom_vjp` SwiGLU with its own residuals; `check_vma=False`."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((1, 8), ("d", "m"))
L, D, B = 4, 64, 256
ps = [dict(a=N(3 * i, D, 8 * D), c=N(3 * i + 2, D, 8 * D), b=N(3 * i + 1, 8 * D, D)) for i in range(L)]
spec = dict(a=P(None, "m"), c=P(None, "m"), b=P("m", None))
x = N(99, B, D, scale=1.0)


@jax.custom_vjp
def fop(x):
    return x


fop.defvjp(lambda x: (x, None), lambda _, g: (lax.psum(g, "m"),))


@jax.custom_vjp
def gop(x):
    return lax.psum(x, "m")


gop.defvjp(lambda x: (lax.psum(x, "m"), None), lambda _, g: (g,))


@jax.custom_vjp
def quant(w):
    return jnp.round(w * 64) / 64


def qf(w):
    q = jnp.round(w * 64).astype(jnp.int8)
    return q.astype(w.dtype) / 64, (jnp.abs(w) < 1.9)


quant.defvjp(qf, lambda m, g: (jnp.where(m, g, 0.0),))


@jax.custom_vjp
def swiglu(a, c):
    return jax.nn.silu(a) * c


def sb(r, g):
    a, c = r
    s = jax.nn.sigmoid(a)
    return g * c * (s + a * s * (1 - s)), g * a * s


swiglu.defvjp(lambda a, c: (swiglu(a, c), (a, c)), sb)


def block(x, p):
    h = fop(x)
    return x + gop(swiglu(h @ quant(p["a"]), h @ p["c"]) @ p["b"])


def loss(ps, x, remat):
    f = ck(remat)(block)

    def net(ps, x):
        for i, p in enumerate(ps):
            with jax.named_scope(f"block{i}"):
                x = f(x, p)
        return x

    y = jax.shard_map(net, mesh=mesh, in_specs=([spec] * L, P("d")), out_specs=P("d"), check_vma=False)(ps, x)
    return jnp.mean(jnp.square(y))


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
