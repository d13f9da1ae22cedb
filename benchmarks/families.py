"""Training steps by family of structure, against `jax.checkpoint` placed by hand: temporaries and FLOPs of XLA:CPU.

    python -m recompute.benchmarks.families              # all steps, a line each
    python -m recompute.benchmarks.families gan moe      # these

Each function takes `wrap`, which stands around its blocks and the bodies of its loops: the identity for the plain step,
and kinds of `jax.checkpoint` for the best that is placed by hand. Blocks have no names. A line has the temporaries of
both as shares of the plain step's, their ratio, the ratio of FLOPs, seconds, what runs, and whether it is proved.
"""

# pyright: basic
# ruff: noqa: E731

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import recompute

Wrap = Callable[..., Any]
KEPT: Any = {"xla_disable_hlo_passes": "cse_barrier_expander"}
STEPS: dict[str, Callable[[Wrap], Any]] = {}
draw = np.random.default_rng(0)
tree_map, value_and_grad = jax.tree.map, jax.value_and_grad
policies = jax.checkpoint_policies
BY_HAND = (
    partial(jax.checkpoint, prevent_cse=False),
    jax.checkpoint,
    partial(jax.checkpoint, policy=policies.dots_saveable, prevent_cse=False),
    partial(jax.checkpoint, policy=policies.dots_with_no_batch_dims_saveable),
)


def step(make: Callable[[Wrap], Any]) -> Callable[[Wrap], Any]:
    """Add a step to the table; `make(wrap)` gives the function and its arguments."""
    STEPS[make.__name__] = make
    return make


def normal(*shape: int) -> jax.Array:
    return jnp.asarray(draw.normal(0, 0.3, shape), jnp.float32)


def layers(count: int, width: int = 32, hidden: int = 128) -> dict[str, jax.Array]:
    """Stacked weights of residual layers."""
    return {"u": normal(count, width, hidden), "d": normal(count, hidden, width)}


def layer_of(stacked: Any, index: int) -> Any:
    return tree_map(lambda leaf: leaf[index], stacked)


def mlp(x: Any, p: Any) -> Any:
    return x + jnp.tanh(jnp.sin(x @ p["u"]) @ p["d"])


# Loops in a row
@step
def two_forward_loops(wrap):
    def loss(p, X):
        Z = lax.map(wrap(lambda x: jnp.tanh(jnp.sin(x @ p["e"]) @ p["f"])), X)
        h, value = lax.scan(wrap(lambda h, z: (jnp.tanh(h @ p["r"] + z), jnp.mean(h))), jnp.zeros_like(X[0]), Z)
        return jnp.mean(h**2) + jnp.mean(value)

    return value_and_grad(loss), (dict(e=normal(32, 128), f=normal(128, 32), r=normal(32, 32)), normal(8, 64, 32))


@step
def ppo(wrap):
    def update(p, s0, noise):
        def roll(s, n):
            a = jnp.tanh(mlp(s, p) @ p["w"]) + n
            return jnp.tanh(s + a @ p["w"].T), (s, a, jnp.mean(s * s, -1))

        _, (S, Ac, Rw) = lax.scan(roll, s0, noise)
        _, G = lax.scan(lambda g, r: (r + 0.9 * g, r + 0.9 * g), jnp.zeros_like(Rw[0]), Rw, reverse=True)

        def loss(p):
            def body(c, b):
                s, a, g = b
                m = jnp.tanh(mlp(mlp(s, p), p) @ p["w"])
                return c + jnp.mean((m - a) ** 2 * g[:, None]), None

            return lax.scan(wrap(body), 0.0, (S, Ac, G))[0]

        def epoch(p, _):
            value, g = jax.value_and_grad(loss_of(p))(p)
            return tree_map(lambda a, b: a - 0.1 * b, p, g), value

        loss_of = lambda p: loss
        return lax.scan(epoch, p, None, length=3)

    return update, (dict(u=normal(32, 128), d=normal(128, 32), w=normal(32, 8)), normal(64, 32), normal(8, 64, 8))


@step
def reference_accum(wrap):
    def update(p, ref, X):
        lp = lax.map(lambda x: mlp(mlp(x, ref), ref), X)

        def acc(c, xr):
            x, r = xr
            value, g = jax.value_and_grad(
                lambda p: jnp.mean((lax.scan(wrap(lambda x, q: (mlp(x, q), None)), x, p)[0] - r) ** 2)
            )(p)
            return tree_map(jnp.add, c, (value, g)), None

        z = tree_map(jnp.zeros_like, (jnp.float32(0), p))
        (value, g), _ = lax.scan(acc, z, (X, lp))
        return value, tree_map(lambda a, b: a - 0.1 * b, p, g)

    return update, (layers(6), layer_of(layers(1), 0), normal(4, 64, 32))


@step
def encoder_decoder_scans(wrap):
    def loss(p, x, y):
        h = lax.scan(wrap(lambda x, q: (mlp(x, q), None)), x, p["enc"])[0]
        z = lax.scan(wrap(lambda y, q: (mlp(y + jnp.tanh(h), q), None)), y, p["dec"])[0]
        return jnp.mean(z**2)

    return value_and_grad(loss), (dict(enc=layers(6), dec=layers(6)), normal(64, 32), normal(64, 32))
    # A gradient inside of the loss


def inner(w, x):
    return jnp.mean(jnp.tanh(jnp.tanh(x @ w["a"]) @ w["b"]) ** 2)


two_matrices = lambda: dict(a=normal(16, 64), b=normal(64, 16))


@step
def maml_unrolled(wrap):
    def loss(w, X):
        def task(x):
            v = w
            for _ in range(4):
                v = wrap(lambda v, x: tree_map(lambda a, g: a - 0.1 * g, v, jax.grad(inner)(v, x)))(v, x)
            return inner(v, x)

        return jnp.mean(jax.vmap(task)(X))

    return value_and_grad(loss), (two_matrices(), normal(8, 64, 16))


@step
def maml_scan(wrap):
    def loss(w, X):
        ad = lambda x: lax.scan(
            wrap(lambda v, _: (tree_map(lambda a, g: a - 0.1 * g, v, jax.grad(inner)(v, x)), None)), w, None, length=8
        )[0]
        return jnp.mean(jax.vmap(lambda x: inner(ad(x), x))(X))

    return value_and_grad(loss), (two_matrices(), normal(8, 64, 16))


@step
def learned_opt(wrap):
    def loss(th, w, X):
        def body(c, x):
            w, m = c
            g = jax.grad(inner)(w, x)
            m = tree_map(lambda m, g: th["b"] * m + g, m, g)
            u = tree_map(lambda m, g: jnp.tanh(m * th["s"] + g) * th["value"], m, g)
            return (tree_map(jnp.subtract, w, u), m), inner(w, x)

        return jnp.mean(lax.scan(wrap(body), (w, tree_map(jnp.zeros_like, w)), X)[1])

    return value_and_grad(loss), (
        dict(b=jnp.float32(0.9), s=jnp.float32(1.0), value=jnp.float32(0.1)),
        two_matrices(),
        normal(8, 64, 16),
    )


@step
def forces(wrap):
    def energy(p, r):
        x = jnp.sin(r @ p["i"])
        x = lax.scan(wrap(lambda x, q: (mlp(x, q), None)), x, p["value"])[0]
        return jnp.sum(x**2) * 1e-3

    def loss(p, r, F):
        e, f = jax.value_and_grad(energy, 1)(p, r)
        return e**2 * 1e-4 + jnp.mean((f - F) ** 2)

    return value_and_grad(loss), (dict(i=normal(3, 32), value=layers(4)), normal(128, 3), normal(128, 3))


@step
def forces_unrolled(wrap):
    def energy(p, r):
        x = jnp.sin(r @ p["i"])
        for i in range(4):
            x = wrap(mlp)(x, layer_of(p["value"], i))
        return jnp.sum(x**2) * 1e-3

    def loss(p, r, F):
        e, f = jax.value_and_grad(energy, 1)(p, r)
        return e**2 * 1e-4 + jnp.mean((f - F) ** 2)

    return value_and_grad(loss), (dict(i=normal(3, 32), value=layers(4)), normal(128, 3), normal(128, 3))


@step
def wgan_gp(wrap):
    def D(p, x):
        for i in range(5):
            x = wrap(mlp)(x, layer_of(p, i))
        return jnp.sum(x, -1)

    def loss(p, x):
        g = jax.vmap(jax.grad(lambda x: D(p, x[None])[0]))(x)
        return jnp.mean(D(p, x)) + 10 * jnp.mean((jnp.sqrt(jnp.sum(g**2, -1) + 1e-6) - 1) ** 2)

    return value_and_grad(loss), (layers(5), normal(64, 32))


@step
def deq(wrap):
    def loss(p, x):
        z = lax.fori_loop(0, 12, wrap(lambda i, z: jnp.tanh(z @ p["u"] @ p["d"] + x)), jnp.zeros_like(x))
        return jnp.mean(z**2)

    return value_and_grad(loss), (layer_of(layers(1), 0), normal(64, 32))
    # Several gradients in one step


@step
def gan(wrap):
    def net(p, x):
        for i in range(5):
            x = wrap(mlp)(x, layer_of(p, i))
        return x

    def update(g, d, z, x):
        dl = lambda d: (
            jnp.mean(jax.nn.softplus(-net(d, x).sum(-1))) + jnp.mean(jax.nn.softplus(net(d, net(g, z)).sum(-1)))
        )
        l1, gd = jax.value_and_grad(dl)(d)
        d = tree_map(lambda a, b: a - 0.1 * b, d, gd)
        gl = lambda g: jnp.mean(jax.nn.softplus(-net(d, net(g, z)).sum(-1)))
        l2, gg = jax.value_and_grad(gl)(g)
        return l1, l2, tree_map(lambda a, b: a - 0.1 * b, g, gg), d

    return update, (layers(5), layers(5), normal(128, 32), normal(128, 32))


@step
def sam(wrap):
    def net(p, x):
        for i in range(6):
            x = wrap(mlp)(x, layer_of(p, i))
        return jnp.mean(x**2)

    def update(p, x):
        value, g = jax.value_and_grad(net)(p, x)
        n = jnp.sqrt(sum(jnp.sum(v * v) for v in jax.tree.leaves(g)))
        q = tree_map(lambda a, b: a + 0.05 * b / n, p, g)
        g2 = jax.grad(net)(q, x)
        return value, tree_map(lambda a, b: a - 0.1 * b, p, g2)

    return update, (layers(6), normal(128, 32))


@step
def actor_critic(wrap):
    def net(p, x):
        for i in range(5):
            x = wrap(mlp)(x, layer_of(p, i))
        return x

    def update(a, c, s, r):
        vl = lambda c: jnp.mean((net(c, s).mean(-1) - r) ** 2)
        value, gc = jax.value_and_grad(vl)(c)
        adv = lax.stop_gradient(r - net(c, s).mean(-1))
        pl = lambda a: -jnp.mean(jax.nn.log_softmax(net(a, s))[:, 0] * adv)
        l2, ga = jax.value_and_grad(pl)(a)
        f = lambda p, g: tree_map(lambda a, b: a - 0.1 * b, p, g)
        return value, l2, f(a, ga), f(c, gc)

    return update, (layers(5), layers(5), normal(128, 32), normal(128))


@step
def pcgrad(wrap):
    def net(p, x):
        for i in range(5):
            x = wrap(mlp)(x, layer_of(p, i))
        return x

    def update(p, x):
        l1, g1 = jax.value_and_grad(lambda p: jnp.mean(net(p, x) ** 2))(p)
        l2, g2 = jax.value_and_grad(lambda p: jnp.mean(jnp.abs(net(p, x))))(p)
        return l1, l2, tree_map(lambda p, a, b: p - 0.1 * (a + b), p, g1, g2)

    return update, (layers(5), normal(128, 32))


@step
def gan_scans(wrap):
    def net(p, x):
        return lax.scan(wrap(lambda x, q: (mlp(x, q), None)), x, p)[0]

    return _adversaries(wrap, net)


def _adversaries(wrap, net):
    def update(g, d, z, x):
        dl = lambda d: (
            jnp.mean(jax.nn.softplus(-net(d, x).sum(-1))) + jnp.mean(jax.nn.softplus(net(d, net(g, z)).sum(-1)))
        )
        l1, gd = jax.value_and_grad(dl)(d)
        d = tree_map(lambda a, b: a - 0.1 * b, d, gd)
        gl = lambda g: jnp.mean(jax.nn.softplus(-net(d, net(g, z)).sum(-1)))
        l2, gg = jax.value_and_grad(gl)(g)
        return l1, l2, tree_map(lambda a, b: a - 0.1 * b, g, gg), d

    return update, (layers(5), layers(5), normal(128, 32), normal(128, 32))


@step
def hvp(wrap):
    f = lambda p, x: jnp.mean(lax.scan(wrap(lambda x, q: (mlp(x, q), None)), x, p)[0] ** 2)
    return (lambda p, v, x: jax.jvp(lambda p: jax.grad(f)(p, x), (p,), (v,))), (layers(6), layers(6), normal(64, 32))
    # Loops and branches in each other


@step
def scan_cond_scan(wrap):
    inn = lambda p, x: lax.scan(
        wrap(lambda x, _: (x + 0.1 * jnp.tanh(jnp.sin(x @ p["u"]) @ p["d"]), None)), x, None, length=8
    )[0]

    def loss(p, x):
        return jnp.mean(
            lax.scan(
                wrap(lambda x, _: (lax.cond(jnp.max(x) < 4.0, lambda x: inn(p, x), lambda x: x, x), None)),
                x,
                None,
                length=8,
            )[0]
            ** 2
        )

    return value_and_grad(loss), (dict(u=normal(32, 128) * 0.1, d=normal(128, 32) * 0.1), normal(64, 32))


@step
def cond_scan(wrap):
    def loss(p, x):
        y = lax.cond(
            jnp.mean(x) < 4.0, lambda x: lax.scan(wrap(lambda x, q: (mlp(x, q), None)), x, p)[0], lambda x: x * 2, x
        )
        return jnp.mean(y**2)

    return value_and_grad(loss), (layers(8), normal(64, 32))


@step
def scan_switch(wrap):
    def loss(p, x):
        fs = [lambda x, q: mlp(x, q), lambda x, q: jnp.tanh(x @ q["u"] @ q["d"]), lambda x, q: x]
        return jnp.mean(
            lax.scan(wrap(lambda x, iq: (lax.switch(iq[0] % 3, fs, x, iq[1]), None)), x, (jnp.arange(8), p))[0] ** 2
        )

    return value_and_grad(loss), (layers(8), normal(64, 32))


@step
def bounded_while(wrap):
    def loss(p, x):
        def body(c, q):
            x, done = c
            y = lax.cond(done, lambda x: x, lambda x: mlp(x, q), x)
            return (y, done | (jnp.mean(y) > 99.0)), None

        return jnp.mean(lax.scan(wrap(body), (x, False), p)[0][0] ** 2)

    return value_and_grad(loss), (layers(8), normal(64, 32))


@step
def cond_in_blocks(wrap):
    def loss(p, x):
        for i in range(6):
            x = lax.cond(x[0, 0] > -9, wrap(lambda x, q: mlp(x, q)), lambda x, q: x, x, layer_of(p, i))
        return jnp.mean(x**2)

    return value_and_grad(loss), (layers(6), normal(128, 32))
    # Accumulated gradients


@step
def accum_scan(wrap):
    def net(p, x):
        for i in range(5):
            x = wrap(mlp)(x, layer_of(p, i))
        return jnp.mean(x**2)

    def update(p, X):
        (value, g), _ = lax.scan(
            lambda c, x: (tree_map(jnp.add, c, jax.value_and_grad(net)(p, x)), None),
            tree_map(jnp.zeros_like, (jnp.float32(0), p)),
            X,
        )
        return value, tree_map(lambda a, b: a - 0.1 * b, p, g)

    return update, (layers(5), normal(4, 64, 32))


@step
def accum_peeled(wrap):
    def net(p, x):
        for i in range(5):
            x = wrap(mlp)(x, layer_of(p, i))
        return jnp.mean(x**2)

    def update(p, X):
        c = jax.value_and_grad(net)(p, X[0])
        (value, g), _ = lax.scan(lambda c, x: (tree_map(jnp.add, c, jax.value_and_grad(net)(p, x)), None), c, X[1:])
        return value, tree_map(lambda a, b: a - 0.1 * b, p, g)

    return update, (layers(5), normal(4, 64, 32))


@step
def accum_unrolled(wrap):
    def net(p, x):
        for i in range(5):
            x = wrap(mlp)(x, layer_of(p, i))
        return jnp.mean(x**2)

    def update(p, X):
        c = jax.value_and_grad(net)(p, X[0])
        for j in range(1, 3):
            c = tree_map(jnp.add, c, jax.value_and_grad(net)(p, X[j]))
        return c[0], tree_map(lambda a, b: a - 0.1 * b, p, c[1])

    return update, (layers(5), normal(3, 64, 32))
    # Blocks without names


@step
def mlp_unnamed(wrap):
    def loss(p, x):
        for i in range(8):
            x = wrap(mlp)(x, layer_of(p, i))
        return jnp.mean(x**2)

    return value_and_grad(loss), (layers(8), normal(256, 32))


def attention(x, p, H=4):
    B, T, D = x.shape
    ln = lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    q, k, v = jnp.split(ln(x) @ p["qkv"], 3, -1)
    r = lambda a: a.reshape(B, T, H, D // H).transpose(0, 2, 1, 3)
    a = jax.nn.softmax(r(q) @ r(k).swapaxes(-1, -2) / 4)
    x = x + (a @ r(v)).transpose(0, 2, 1, 3).reshape(B, T, D) @ p["o"]
    return x + jax.nn.gelu(ln(x) @ p["u"]) @ p["d"]


def attention_layers(n, w=32):
    return dict(qkv=normal(n, w, 3 * w), o=normal(n, w, w), u=normal(n, w, 4 * w), d=normal(n, 4 * w, w))


@step
def transformer_unnamed(wrap):
    def loss(p, e, t):
        x = e[t]
        for i in range(6):
            x = wrap(attention)(x, layer_of(p, i))
        lp = jax.nn.log_softmax(x @ e.T)
        return -jnp.mean(jnp.take_along_axis(lp, t[..., None], -1))

    return value_and_grad(loss), (attention_layers(6), normal(64, 32), jnp.asarray(draw.integers(0, 64, (8, 32))))


@step
def chunked_ce(wrap):
    def loss(p, e, t):
        x = e[t]
        for i in range(4):
            x = wrap(attention)(x, layer_of(p, i))

        def ch(c, xt):
            x, t = xt
            lp = jax.nn.log_softmax(x @ e.T)
            return c - jnp.mean(jnp.take_along_axis(lp, t[..., None], -1)), None

        return lax.scan(wrap(ch), 0.0, (x, t))[0]

    return value_and_grad(loss), (attention_layers(4), normal(512, 32), jnp.asarray(draw.integers(0, 512, (8, 32))))


@step
def moe(wrap):
    def layer(x, p):
        g = jax.nn.softmax(x @ p["g"])
        h = jnp.tanh(jnp.einsum("td,edh->teh", x, p["u"]))
        return x + jnp.einsum("teh,ehd,te->td", h, p["d"], g)

    def loss(p, x):
        for i in range(5):
            x = wrap(layer)(x, layer_of(p, i))
        return jnp.mean(x**2)

    return value_and_grad(loss), (
        dict(g=normal(5, 32, 4), u=normal(5, 4, 32, 64), d=normal(5, 4, 64, 32)),
        normal(128, 32),
    )


@step
def unet(wrap):
    def cv(x, w):
        return jax.nn.silu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))

    def b(x, w):
        return cv(cv(x, w[0]), w[1])

    def loss(p, x):
        s = []
        for i in range(3):
            x = wrap(b)(x, p["dn"][i])
            s.append(x)
            x = x[:, ::2, ::2]
        for i in range(3):
            x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
            x = wrap(b)(x + s[2 - i], p["up"][i])
        return jnp.mean(x**2)

    return value_and_grad(loss), (dict(dn=normal(3, 2, 3, 3, 8, 8), up=normal(3, 2, 3, 3, 8, 8)), normal(2, 32, 32, 8))


@step
def int8_ste(wrap):
    def q(w):
        s = jnp.max(jnp.abs(w)) / 127
        return w + lax.stop_gradient(jnp.round(w / s) * s - w)

    def block(x, p):
        return x + jnp.tanh(jnp.sin(q(x) @ q(p["u"])) @ q(p["d"]))

    def loss(p, x):
        for i in range(6):
            x = wrap(block)(x, layer_of(p, i))
        return jnp.mean(x**2)

    return value_and_grad(loss), (layers(6), normal(128, 32))


@step
def loss_scale(wrap):
    def update(p, x, sc):
        def loss(p):
            h = x.astype(jnp.bfloat16)
            for i in range(6):
                h = wrap(mlp)(h, tree_map(lambda v: v.astype(jnp.bfloat16), layer_of(p, i)))
            return jnp.mean(h.astype(jnp.float32) ** 2) * sc

        value, g = jax.value_and_grad(loss)(p)
        g = tree_map(lambda g: g / sc, g)
        ok = jnp.all(jnp.stack([jnp.all(jnp.isfinite(v)) for v in jax.tree.leaves(g)]))
        return value, tree_map(lambda a, b: jnp.where(ok, a - 0.1 * b, a), p, g), jnp.where(ok, sc * 2, sc / 2)

    return update, (layers(6), normal(256, 32), jnp.float32(8.0))
    # Loops over layers and time


@step
def map_over_layers(wrap):
    def loss(p, x):
        return jnp.mean(lax.map(wrap(lambda q: mlp(mlp(x, q), q)), p) ** 2)

    return value_and_grad(loss), (layers(8), normal(64, 32))


@step
def nested_scans(wrap):
    def loss(p, X):
        f = lambda x: lax.scan(wrap(lambda x, q: (mlp(x, q), None)), x, p)[0]
        return lax.scan(lambda c, x: (c + jnp.mean(f(x) ** 2), None), 0.0, X)[0]

    return value_and_grad(loss), (layers(6), normal(4, 64, 32))


@step
def nested_scans_both(wrap):
    def loss(p, X):
        f = lambda x: lax.scan(wrap(lambda x, q: (mlp(x, q), None)), x, p)[0]
        return lax.scan(wrap(lambda c, x: (c + jnp.mean(f(x) ** 2), None)), 0.0, X)[0]

    return value_and_grad(loss), (layers(6), normal(4, 64, 32))


@step
def rk4(wrap):
    def loss(p, x):
        f = lambda x: jnp.tanh(x @ p["u"]) @ p["d"]

        def s(i, x):
            k1 = f(x)
            k2 = f(x + 0.05 * k1)
            k3 = f(x + 0.05 * k2)
            k4 = f(x + 0.1 * k3)
            return x + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return jnp.mean(lax.fori_loop(0, 8, wrap(s), x) ** 2)

    return value_and_grad(loss), (layer_of(layers(1), 0), normal(64, 32))


@step
def gru(wrap):
    def loss(p, X):
        def c(h, x):
            z = jax.nn.sigmoid(x @ p["z"] + h @ p["y"])
            n = jnp.tanh(x @ p["n"] + (z * h) @ p["m"])
            h = (1 - z) * n + z * h
            return h, h

        _, H = lax.scan(wrap(c), jnp.zeros((64, 32)), X)
        return jnp.mean(H**2)

    return value_and_grad(loss), ({k: normal(32, 32) for k in "zynm"}, normal(16, 64, 32))


@step
def mamba(wrap):
    def loss(p, X):
        def layer(X, q):
            def c(h, x):
                d = jax.nn.softplus(x @ q["t"])
                h = h * jnp.exp(-d)[..., None] + (d * x)[..., None] * q["B"]
                return h, (h * q["C"]).sum(-1)

            return X + lax.scan(wrap(c), jnp.zeros((8, 32, 4)), X)[1]

        for i in range(3):
            X = wrap(layer)(X, layer_of(p, i))
        return jnp.mean(X**2)

    return value_and_grad(loss), (dict(t=normal(3, 32, 32), B=normal(3, 4), C=normal(3, 4)), normal(16, 8, 32))


@step
def rnn_attention(wrap):
    def loss(p, X, M):
        def c(h, x):
            a = jax.nn.softmax(h @ M.T)
            h = jnp.tanh(x @ p["a"] + h @ p["b"] + a @ M)
            return h, jnp.mean(h)

        return jnp.mean(lax.scan(wrap(c), jnp.zeros((64, 32)), X)[1])

    return value_and_grad(loss), (dict(a=normal(32, 32), b=normal(32, 32)), normal(12, 64, 32), normal(48, 32))
    # Random numbers and state


@step
def dropout_scan(wrap):
    def loss(p, x, k):
        def c(x, qk):
            q, k = qk
            h = mlp(x, q)
            return jnp.where(jax.random.bernoulli(k, 0.9, h.shape), h / 0.9, 0.0), None

        return jnp.mean(lax.scan(wrap(c), x, (p, jax.random.split(k, 8)))[0] ** 2)

    return value_and_grad(loss), (layers(8), normal(64, 32), jax.random.key(0))


@step
def dropout_unrolled(wrap):
    def loss(p, x, k):
        def c(x, q, k):
            h = mlp(x, q)
            return jnp.where(jax.random.bernoulli(k, 0.9, h.shape), h / 0.9, 0.0)

        for i in range(6):
            x = wrap(c)(x, layer_of(p, i), jax.random.fold_in(k, i))
        return jnp.mean(x**2)

    return value_and_grad(loss), (layers(6), normal(128, 32), jax.random.key(0))


@step
def batchnorm(wrap):
    def loss(p, s, x):
        new = []

        def block(x, q, s):
            m = x.mean(0)
            v = x.var(0)
            return jnp.tanh(((x - m) * lax.rsqrt(v + 1e-5)) @ q["u"]) @ q["d"], (
                0.9 * s[0] + 0.1 * m,
                0.9 * s[1] + 0.1 * v,
            )

        for i in range(6):
            y, n = wrap(block)(x, layer_of(p, i), s[i])
            x = x + y
            new.append(n)
        return jnp.mean(x**2), new

    return jax.value_and_grad(loss, has_aux=True), (layers(6), [(normal(32), normal(32))] * 6, normal(128, 32))
    # Other structures


@step
def gnn(wrap):
    def loss(p, x, s, r):
        def block(x, q):
            m = jnp.tanh(x[s] @ q["u"])
            return x + jax.ops.segment_sum(m, r, 64) @ q["d"]

        for i in range(5):
            x = wrap(block)(x, layer_of(p, i))
        return jnp.mean(x**2)

    return value_and_grad(loss), (
        layers(5, 32, 32),
        normal(64, 32),
        jnp.asarray(draw.integers(0, 64, 256)),
        jnp.asarray(draw.integers(0, 64, 256)),
    )


@step
def flow(wrap):
    def block(x, q):
        a, b = jnp.split(x, 2, -1)
        h = jnp.tanh(a @ q["u"]) @ q["d"]
        s, t = jnp.split(h, 2, -1)
        s = jnp.tanh(s)
        return jnp.concatenate([b * jnp.exp(s) + t, a], -1), s.sum(-1)

    def loss(p, x):
        ld = 0.0
        for i in range(6):
            x, d = wrap(block)(x, layer_of(p, i))
            ld = ld + d
        return jnp.mean(x**2) - jnp.mean(ld)

    return value_and_grad(loss), (dict(u=normal(6, 16, 128), d=normal(6, 128, 32)), normal(128, 32))


@step
def lora(wrap):
    def loss(value, p, x):
        def f(x, q, r):
            return x + jnp.tanh(x @ q["u"] + x @ r["a"] @ r["b"]) @ q["d"]

        for i in range(6):
            x = wrap(f)(x, layer_of(p, i), layer_of(value, i))
        return jnp.mean(x**2)

    return value_and_grad(loss), (dict(a=normal(6, 32, 4), b=normal(6, 4, 128)), layers(6), normal(128, 32))


@step
def per_example(wrap):
    def loss(p, x):
        return jnp.mean(lax.scan(wrap(lambda x, q: (mlp(x, q), None)), x, p)[0] ** 2)

    def update(p, X):
        g = jax.vmap(jax.grad(loss), (None, 0))(p, X)
        n = jnp.sqrt(sum(jnp.sum(v.reshape(v.shape[0], -1) ** 2, -1) for v in jax.tree.leaves(g)))
        c = jnp.minimum(1.0, 1 / n)
        return tree_map(lambda p, v: p - 0.1 * jnp.tensordot(c, v, 1), p, g)

    return update, (layers(4, 16, 32), normal(8, 16, 16))


@step
def pinn(wrap):
    def u(p, x):
        h = jnp.sin(x @ p["i"])
        for i in range(4):
            h = wrap(mlp)(h, layer_of(p["value"], i))
        return jnp.sum(h)

    def loss(p, X):
        r = jax.vmap(lambda x: jnp.sum(jnp.diag(jax.hessian(u, 1)(p, x))))(X)
        return jnp.mean(r**2)

    return value_and_grad(loss), (dict(i=normal(2, 32), value=layers(4)), normal(64, 2))


@step
def vae(wrap):
    def loss(p, x, e):
        h = x
        for i in range(3):
            h = wrap(mlp)(h, layer_of(p["e"], i))
        z = h + jnp.exp(0.1 * h) * e
        y = z
        for i in range(3):
            y = wrap(mlp)(y, layer_of(p["d"], i))
        return jnp.mean((y - x) ** 2) + 0.1 * jnp.mean(h**2)

    return value_and_grad(loss), (dict(e=layers(3), d=layers(3)), normal(256, 32), normal(256, 32))


def needs(compiled: Any) -> tuple[int, float]:
    """Bytes of temporaries, and FLOPs."""
    return compiled.memory_analysis().temp_size_in_bytes, compiled.cost_analysis()["flops"]


def line(name: str) -> str:
    """The measurements of one step."""
    function, arguments = STEPS[name](lambda body, **_: body)
    plain, _ = needs(jax.jit(function).lower(*arguments).compile())
    by_hand = (jax.jit(STEPS[name](wrap)[0]).lower(*arguments) for wrap in BY_HAND)
    size, flops = min(needs(one.compile(compiler_options=KEPT)) for one in by_hand)
    start = time.monotonic()
    lowered = recompute.jax.jit(function).lower_quietly(*arguments)
    choice = lowered.choice
    seconds = time.monotonic() - start
    our_size, our_flops = needs(choice.compiled)
    proved = lowered.rewritten is not None and bool(lowered.rewritten.proof)
    return (
        f"{name:<24}{size / plain:>8.3f}{our_size / plain:>8.3f}{our_size / size:>8.3f}{our_flops / flops:>8.3f}"
        f"{seconds:>7.1f}  {choice.way.name.lower()}, {'proved' if proved else 'not proved'}"
        f"{'' if choice.why is None else f': {choice.why}'}"
    )


def main() -> None:
    warnings.simplefilter("ignore", recompute.jax.NothingSaved)
    print(f"{'step':<24}{'by hand':>8}{'ours':>8}{'ratio':>8}{'FLOPs':>8}{'s':>7}")
    for name in sys.argv[1:] or STEPS:
        print(line(name), flush=True)


if __name__ == "__main__":
    main()
