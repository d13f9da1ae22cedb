"""An encoder-decoder in one `shard_map`, whose decoder blocks all read the encoder's output; heads over m; the loss is
a `custom_vjp` around a whole `shard_map`, with a hand-written backward one."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((2, 4), ("d", "m"))
D, H, B, T = 48, 4, 8, 32
w = lambda s: dict(q=N(s, D, D), k=N(s + 1, D, D), v=N(s + 2, D, D), o=N(s + 3, D, D))
ws = dict(q=P(None, "m"), k=P(None, "m"), v=P(None, "m"), o=P("m", None))
ps = dict(enc=[w(10 * i) for i in range(2)], dec=[dict(s=w(100 + 20 * i), c=w(110 + 20 * i)) for i in range(3)])
sp = dict(enc=[ws] * 2, dec=[dict(s=ws, c=ws)] * 3)
x = N(99, B, T, D, scale=1.0)
y = N(98, B, T, D, scale=1.0)


def att(x, m, p):
    q, k, v = ((a @ p[n]).reshape(*a.shape[:2], H // 4, -1) for a, n in ((x, "q"), (m, "k"), (m, "v")))
    return lax.psum(jax.nn.dot_product_attention(q, k, v).reshape(*x.shape[:2], -1) @ p["o"], "m")


def enc(x, p):
    return jax.nn.standardize(x + att(x, x, p))


def dec(x, m, p):
    x = x + att(x, x, p["s"])
    return jax.nn.standardize(x + att(x, m, p["c"]))


@jax.custom_vjp
def mse(a, b):
    return jax.shard_map(
        lambda a, b: lax.pmean(((a - b) ** 2).mean(), "d"), mesh=mesh, in_specs=(P("d"), P("d")), out_specs=P()
    )(a, b)


mse.defvjp(
    lambda a, b: (mse(a, b), (a, b)),
    lambda r, g: (
        jax.shard_map(
            lambda a, b, g: g * 2 * (a - b) / (a.size * 2), mesh=mesh, in_specs=(P("d"), P("d"), P()), out_specs=P("d")
        )(*r, g),
        None,
    ),
)


def loss(ps, x, y, remat):
    e, d = ck(remat)(enc), ck(remat)(dec)

    def net(ps, x, y):
        for i, p in enumerate(ps["enc"]):
            with jax.named_scope(f"enc{i}"):
                x = e(x, p)
        for i, p in enumerate(ps["dec"]):
            with jax.named_scope(f"dec{i}"):
                y = d(y, x, p)
        return y

    return mse(jax.shard_map(net, mesh=mesh, in_specs=(sp, P("d"), P("d")), out_specs=P("d"))(ps, x, y), y)


ARGS = (ps, x, y)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
