"""Vocabulary-parallel embedding and cross entropy with `axis_index` offsets, a logsumexp by pmax and psum, a jitted
function shared by the blocks, and a scan over layers."""

# ruff: noqa
# pyright: basic

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .given import M, N, ck

mesh = M((2, 4), ("d", "m"))
L, D, V, B, T = 4, 32, 256, 8, 64
ps = dict(e=N(1, V, D), ls=dict(a=N(2, L, D, 4 * D), b=N(3, L, 4 * D, D), g=jnp.ones((L, D))))
x = jax.random.randint(jax.random.key(5), (B, T + 1), 0, V)
sp = dict(e=P("m"), ls=dict(a=P(None, None, "m"), b=P(None, "m"), g=P()))


@jax.jit
def norm(x, g):
    return jax.nn.standardize(x, axis=-1) * g


def block(x, p):
    return x + lax.psum(jax.jit(jax.nn.swish)(norm(x, p["g"]) @ p["a"]) @ p["b"], "m")


def head(x, e, lab):
    vl = e.shape[0]
    off = lax.axis_index("m") * vl
    z = x @ e.T
    mx = lax.pmax(lax.stop_gradient(z.max(-1)), "m")
    lse = jnp.log(lax.psum(jnp.exp(z - mx[..., None]).sum(-1), "m")) + mx
    loc = lab - off
    ok = (loc >= 0) & (loc < vl)
    pick = lax.psum(jnp.where(ok, jnp.take_along_axis(z, jnp.where(ok, loc, 0)[..., None], -1)[..., 0], 0.0), "m")
    return lse - pick


def loss(ps, tok, remat):
    f = ck(remat)(block)
    hd = ck(remat)(head)

    def net(ps, tok):
        e = ps["e"]
        vl = e.shape[0]
        off = lax.axis_index("m") * vl
        loc = tok[:, :-1] - off
        ok = (loc >= 0) & (loc < vl)
        x = lax.psum(jnp.where(ok[..., None], e[jnp.where(ok, loc, 0)], 0.0), "m")
        x, _ = lax.scan(lambda x, p: (f(x, p), None), x, ps["ls"])
        return hd(x, e, tok[:, 1:])

    return jax.shard_map(net, mesh=mesh, in_specs=(sp, P("d")), out_specs=P("d"))(ps, tok).mean()


ARGS = (ps, x)


def fun(remat):
    return jax.value_and_grad(functools.partial(loss, remat=remat))
