"""Steps with unusual element types, derivatives and operations."""

# pyright: basic

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from recompute.benchmarks.consumers.case import (
    BATCH,
    WIDTH,
    Around,
    case,
    descend,
    layer,
    mean_square,
    normal,
    weights,
    weights_and_batch,
)


@jax.custom_vjp
def round_to_levels(x: Any) -> Any:
    """Round to sixteen levels, with a gradient that passes straight through inside the range."""
    return jnp.round(jnp.clip(x, -1, 1) * 8) / 8


round_to_levels.defvjp(
    lambda x: (round_to_levels(x), (jnp.abs(x) <= 1, jnp.sign(x).astype(jnp.int8))),
    lambda saved, g: (jnp.where(saved[0], g, 0.01 * saved[1].astype(g.dtype)),),
)


@case(weights_and_batch)
def custom_vjp(around: Around) -> Any:
    """Build a step with a function that has a custom gradient (`custom_vjp`)."""
    return descend(lambda w, x: jnp.sin(jnp.exp(round_to_levels(jnp.sin(x @ w)))), around)


@jax.custom_jvp
def softplus(x: Any) -> Any:
    """Return log(1 + exp(x)), with a custom derivative."""
    return jnp.log1p(jnp.exp(x))


@softplus.defjvp
def _softplus_jvp(primals: Any, tangents: Any) -> Any:
    return softplus(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0]


@case(weights_and_batch)
def custom_jvp(around: Around) -> Any:
    """Build a step with a function that has a custom derivative in forward mode (`custom_jvp`)."""
    return descend(lambda w, x: jnp.tanh(softplus(jnp.sin(x @ w))), around)


@case(lambda: ([w + 1j * w.T for w in weights()], normal(9, BATCH, WIDTH) + 1j * normal(8, BATCH, WIDTH)))
def complex_numbers(around: Around) -> Any:
    """Build a step that computes with complex numbers."""

    def block(w: Any, x: Any) -> Any:
        y = jnp.sin(0.1 * (x @ w))
        return y / (1 + jnp.abs(y)) * jnp.exp(1j * jnp.angle(y + 0.5))

    return descend(block, around)


@case(weights_and_batch)
def int8_products(around: Around) -> Any:
    """Build a step that multiplies in int8 with int32 sums, and uses the gradient of the float product."""

    def quantized(x: Any) -> Any:
        scale = lax.stop_gradient(jnp.max(jnp.abs(x), -1, keepdims=True)) / 127
        return jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8), scale

    @jax.custom_vjp
    def product(x: Any, w: Any) -> Any:
        (a, s), (b, t) = quantized(x), quantized(w.T)
        total = lax.dot_general(a, b, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)
        return total.astype(jnp.float32) * s * t.T

    product.defvjp(lambda x, w: (product(x, w), (x, w)), lambda saved, g: (g @ saved[1].T, saved[0].T @ g))
    return descend(lambda w, x: jnp.tanh(jnp.exp(jnp.sin(product(x, w)))), around)


@case(lambda: (weights(3, dtype=jnp.bfloat16), normal(9, BATCH, WIDTH, dtype=jnp.bfloat16)))
def bf16(around: Around) -> Any:
    """Build a step that computes in bf16."""
    return descend(layer, around)


@case(lambda: (weights(), normal(9, BATCH, WIDTH), jnp.float32(1024)))
def fp16_with_scale(around: Around) -> Any:
    """Build a step in half precision that scales its loss, and skips the update if the gradient is not finite."""

    def loss(ws: Any, x: Any, scale: Any) -> Any:
        x = x.astype(jnp.float16)
        for index, w in enumerate(ws):
            with jax.named_scope(f"block{index}"):
                x = around(layer)(w.astype(jnp.float16), x)
        return jnp.mean(x.astype(jnp.float32) ** 2) * scale

    def step(ws: Any, x: Any, scale: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(ws, x, scale)
        finite = jnp.stack([jnp.isfinite(g).all() for g in gradient]).all()
        new = [jnp.where(finite, w - 0.1 * g / scale, w) for w, g in zip(ws, gradient, strict=True)]
        return value / scale, new, jnp.where(finite, scale, scale / 2)

    return step


@case(weights_and_batch)
def fp8(around: Around) -> Any:
    """Build a step with matrix products in fp8 (e4m3) and gradients in e5m2."""

    @jax.custom_vjp
    def product(x: Any, w: Any) -> Any:
        a, b = x.astype(jnp.float8_e4m3fn), w.astype(jnp.float8_e4m3fn)
        return lax.dot(a, b, preferred_element_type=jnp.float32)

    def backward(saved: Any, g: Any) -> Any:
        g = g.astype(jnp.float8_e5m2).astype(jnp.float32)
        return g @ saved[1].T, saved[0].T @ g

    product.defvjp(lambda x, w: (product(x, w), (x, w)), backward)
    return descend(lambda w, x: jnp.tanh(jnp.exp(jnp.sin(product(x, w)))), around)


@case(weights_and_batch)
def sorts(around: Around) -> Any:
    """Build a step with a sort and a `top_k` in each block."""

    def block(w: Any, x: Any) -> Any:
        y = jnp.sort(jnp.sin(x @ w), -1)
        best, at = lax.top_k(jnp.exp(y), 4)
        return jnp.tanh(y * best.mean(-1, keepdims=True) + jnp.take_along_axis(y, at, -1).sum(-1, keepdims=True))

    return descend(block, around)


@case(lambda: (weights(), normal(9, BATCH, WIDTH), jax.random.randint(jax.random.key(3), (300, 2), 0, BATCH)))
def gathers_and_scatters(around: Around) -> Any:
    """Build a step that passes messages along the edges of a graph, with gathers and scatters."""

    def block(w: Any, x: Any, edges: Any) -> Any:
        messages = jnp.sin(jnp.exp(jnp.sin(x[edges[:, 0]] @ w)))
        total = jax.ops.segment_sum(messages, edges[:, 1], BATCH)
        return jnp.tanh(total).at[edges[:8, 0]].add(0.5).at[edges[8:16, 1]].max(0.1)

    def loss(ws: Any, x: Any, edges: Any) -> Any:
        return mean_square(around(block))(ws, x, edges)

    return jax.value_and_grad(loss)


def _random(around: Around) -> Any:
    def block(w: Any, x: Any, key: Any) -> Any:
        keep = jax.random.bernoulli(key, 0.8, x.shape)
        return jnp.where(keep, layer(w, x), 0) + 0.1 * jax.random.normal(jax.random.fold_in(key, 1), x.shape)

    def loss(ws: Any, x: Any, key: Any) -> Any:
        for index, w in enumerate(ws):
            with jax.named_scope(f"block{index}"):
                x = around(block)(w, x, jax.random.fold_in(key, index))
        return jnp.mean(x**2)

    return jax.value_and_grad(loss)


for _kind in ("threefry2x32", "rbg", "unsafe_rbg"):
    case(lambda kind=_kind: (weights(), normal(9, BATCH, WIDTH), jax.random.key(1, impl=kind)), f"random_{_kind}")(
        _random
    )


@case(weights_and_batch)
def fourier(around: Around) -> Any:
    """Build a step with a Fourier transform and its inverse in each block."""

    def block(w: Any, x: Any) -> Any:
        spectrum = jnp.fft.rfft(jnp.sin(x @ w), axis=0)
        return jnp.tanh(jnp.fft.irfft(spectrum * jnp.exp(-jnp.abs(spectrum)), BATCH, axis=0))

    return descend(block, around)


@case(weights_and_batch)
def solves(around: Around) -> Any:
    """Build a step with a Cholesky factorization and triangular solves in each block."""

    def block(w: Any, x: Any) -> Any:
        factor = jnp.linalg.cholesky(w @ w.T + 2 * jnp.eye(WIDTH))
        y = lax.linalg.triangular_solve(factor, jnp.sin(x), left_side=False, lower=True)
        return jnp.tanh(jnp.exp(jnp.sin(jax.scipy.linalg.cho_solve((factor, True), y.T).T)))

    return descend(block, around)


@case(weights_and_batch)
def eigenvalues(around: Around) -> Any:
    """Build a step that computes eigenvalues in each block, with custom calls to LAPACK."""

    def block(w: Any, x: Any) -> Any:
        values, vectors = jnp.linalg.eigh(w + w.T + jnp.diag(jnp.arange(float(WIDTH))))
        return jnp.tanh(jnp.exp(jnp.sin((x @ vectors) * jnp.sin(values))))

    return descend(block, around)


@case(lambda: ([normal(i, 8, 2, 3, 3, scale=0.3) for i in range(3)], normal(9, 2, 8, 8, 8)))
def convolutions(around: Around) -> Any:
    """Build a step with grouped and dilated convolutions."""

    def block(w: Any, x: Any) -> Any:
        y = lax.conv_general_dilated(jnp.sin(x), w, (1, 1), "SAME", rhs_dilation=(2, 1), feature_group_count=4)
        return jnp.tanh(jnp.exp(jnp.sin(y)))

    return descend(block, around)


@case(lambda: ([normal(i, 4, 4, 3, 3, scale=0.3) for i in range(3)], normal(9, 2, 4, 12, 12)))
def windows(around: Around) -> Any:
    """Build a step with convolutions, and with reductions over windows."""

    def block(w: Any, x: Any) -> Any:
        y = jnp.sin(lax.conv(x, w, (1, 1), "SAME"))
        high = lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 1, 1), "SAME")
        return jnp.tanh(high + lax.reduce_window(jnp.exp(y), 0.0, lax.add, (1, 1, 2, 2), (1, 1, 1, 1), "SAME"))

    return descend(block, around)


@case(lambda: (weights(), normal(9, BATCH, WIDTH), jnp.zeros((0, WIDTH)), np.zeros((BATCH, 0), np.float32)))
def empty_arrays(around: Around) -> Any:
    """Build a step with arrays without elements, in blocks and among arguments and results."""

    def block(w: Any, x: Any, none: Any) -> Any:
        y = jnp.concatenate([jnp.sin(x @ w), jnp.exp(none @ w)])
        return jnp.tanh(jnp.exp(jnp.sin(y))) + y[:0].sum()

    loss = mean_square(around(block))

    def step(ws: Any, x: Any, none: Any, empty: Any) -> Any:
        value, gradient = jax.value_and_grad(loss, (0, 2))(ws, x, none)
        return value, gradient, jnp.sin(empty), x[:, :0]

    return step


@case(lambda: ([jnp.float32(0.3), jnp.float32(0.7), jnp.float32(-0.2)], jnp.float32(1.5)))
def scalars(around: Around) -> Any:
    """Build a step whose weights and input are scalars."""
    return descend(lambda w, x: jnp.tanh(jnp.exp(jnp.sin(w * x))), around)
