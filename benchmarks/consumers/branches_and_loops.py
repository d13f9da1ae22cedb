"""Steps with branches and loops."""

# pyright: basic

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
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
    scanned,
    stacked_weights_and_batch,
    weights,
    weights_and_batch,
)


@case(lambda: (weights(), normal(9, BATCH, WIDTH), jnp.array([1, 0, 1], bool)))
def cond_in_blocks(around: Around) -> Any:
    """Build a step with a conditional in each block."""

    def block(w: Any, x: Any, flag: Any) -> Any:
        return lax.cond(flag, lambda x: jnp.sin(jnp.exp(jnp.sin(x @ w))), lambda x: jnp.tanh(x) @ w, x)

    def loss(ws: Any, x: Any, flags: Any) -> Any:
        for index, w in enumerate(ws):
            with jax.named_scope(f"block{index}"):
                x = around(block)(w, x, flags[index])
        return jnp.mean(x**2)

    return jax.value_and_grad(loss)


@case(lambda: (weights(), normal(9, BATCH, WIDTH), jnp.array(2)))
def switch_in_blocks(around: Around) -> Any:
    """Build a step with a switch in each block."""

    def block(w: Any, x: Any, index: Any) -> Any:
        return lax.switch(index, [jnp.sin, jnp.tanh, lambda h: jnp.exp(jnp.sin(h))], jnp.sin(x @ w))

    def loss(ws: Any, x: Any, index: Any) -> Any:
        for offset, w in enumerate(ws):
            with jax.named_scope(f"block{offset}"):
                x = around(block)(w, x, index + offset)
        return jnp.mean(x**2)

    return jax.value_and_grad(loss)


@case(stacked_weights_and_batch)
def cond_in_scan(around: Around) -> Any:
    """Build a step with nested conditionals in a scan."""

    def body(w: Any, x: Any) -> Any:
        def yes(x: Any) -> Any:
            return lax.cond(x[0, 0] > 0, jnp.tanh, lambda x: jnp.sin(jnp.exp(jnp.sin(x))), x)

        return lax.cond(x.mean() > 0, yes, jnp.sin, jnp.sin(x @ w))

    return scanned(around(body))


@case(lambda: (weights(1)[0], normal(9, BATCH, WIDTH), jax.random.key(4)))
def long_recurrence(around: Around) -> Any:
    """Build a step that scans one layer with dropout 32 times, with the random key in the carry."""

    def loss(w: Any, x: Any, key: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            x, key = carry
            key, now = jax.random.split(key)
            keep = jax.random.bernoulli(now, 0.9, x.shape)
            return (jnp.where(keep, layer(w, x), x), key), x.mean()

        (x, _), means = lax.scan(around(body), (x, key), None, length=32)
        return jnp.mean(x**2) + means.sum()

    return jax.value_and_grad(loss)


@case(stacked_weights_and_batch, twin=False)
def checkpointed_scan(around: Around) -> Any:
    """Build a step with a scan whose body is checkpointed with a policy."""
    return scanned(jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable))


@case(weights_and_batch)
def while_without_gradient(around: Around) -> Any:
    """Build a step with a loop of data-dependent length, through which no gradient flows."""

    def scale(x: Any) -> Any:
        result = lax.while_loop(lambda s: s[1] > 1.0, lambda s: (s[0] + 1, s[1] / 2), (0, jnp.abs(x).max()))
        return lax.stop_gradient(jnp.asarray(result[0], x.dtype) + 1)

    return descend(lambda w, x: layer(w, x) / scale(x), around)


@case(weights_and_batch, twin=False)
def forward_mode_of_while(around: Around) -> Any:
    """Build a step that computes a directional derivative through a while loop."""

    def loss(ws: Any, x: Any) -> Any:
        for index, w in enumerate(ws):
            with jax.named_scope(f"block{index}"):
                x = lax.while_loop(lambda s: s[0] < 3, lambda s, w=w: (s[0] + 1, layer(w, s[1])), (0, x))[1]
        return jnp.mean(x**2)

    return lambda ws, x: jax.jvp(lambda ws: loss(ws, x), (ws,), (ws,))


@case(weights_and_batch)
def bounded_fori(around: Around) -> Any:
    """Build a step with a `fori_loop` with constant bounds in each block."""

    def block(w: Any, x: Any) -> Any:
        return lax.fori_loop(0, 4, lambda i, x: layer(w, x) + 0.1 * i, x)

    return descend(block, around)


@jax.custom_vjp
def fixed_point(w: Any, x: Any) -> Any:
    """Iterate until two successive values are close, at most 20 times."""

    def go_on(state: Any) -> Any:
        return (state[2] < 20) & (jnp.abs(state[0] - state[1]).max() > 1e-3)

    def again(state: Any) -> Any:
        return jnp.tanh(0.1 * state[0] @ w + x), state[0], state[2] + 1

    return lax.while_loop(go_on, again, (jnp.tanh(x), x, 0))[0]


def _fixed_point_backward(saved: Any, g: Any) -> Any:
    w, x, z = saved
    _, pull = jax.vjp(lambda w, x, z: jnp.tanh(0.1 * z @ w + x), w, x, z)
    u = lax.fori_loop(0, 6, lambda _, u: g + pull(u)[2], g)
    return pull(u)[:2]


def _fixed_point_forward(w: Any, x: Any) -> Any:
    z = fixed_point(w, x)
    return z, (w, x, z)


fixed_point.defvjp(_fixed_point_forward, _fixed_point_backward)


@case(weights_and_batch)
def implicit_gradient(around: Around) -> Any:
    """Build a step that iterates to a fixed point in a while loop, and has a custom gradient with a different loop."""
    return descend(lambda w, x: jnp.sin(jnp.exp(jnp.sin(fixed_point(w, x)))), around)


@case(lambda: (jnp.stack(weights(4)), normal(9, 4, BATCH, WIDTH)))
def accumulation(around: Around) -> Any:
    """Build a step that sums the gradients of four microbatches in a scan, with an inner scan over layers."""
    value_and_gradient = scanned(around(layer))

    def step(ws: Any, batches: Any) -> Any:
        def add(total: Any, x: Any) -> Any:
            value, gradient = value_and_gradient(ws, x)
            return total + gradient, value

        total, values = lax.scan(add, jnp.zeros_like(ws), batches)
        return values.mean(), ws - 0.1 * total

    return step


@case(lambda: (weights(), normal(9, 8, 24, WIDTH)))
def vmap_of_grad(around: Around) -> Any:
    """Build a step that clips the gradient of each example by its norm."""
    loss = mean_square(around(layer))

    def step(ws: Any, xs: Any) -> Any:
        values, each = jax.vmap(jax.value_and_grad(loss), (None, 0))(ws, xs)
        norms = jnp.sqrt(sum(jnp.sum(g**2, (1, 2)) for g in each))
        scale = 1 / jnp.maximum(norms, 1.0)
        return values.mean(), [w - 0.1 * jnp.mean(g * scale[:, None, None], 0) for w, g in zip(ws, each, strict=True)]

    return step


@case(lambda: (jnp.stack(weights(4)), normal(9, BATCH, WIDTH), jnp.array(1)))
def traced_slices(around: Around) -> Any:
    """Build a step whose blocks read and write rows at an index that depends on an argument."""

    def block(w: Any, x: Any, at: Any) -> Any:
        rows = lax.dynamic_slice_in_dim(x, at * 8, 16)
        return lax.dynamic_update_slice_in_dim(jnp.sin(x @ w), jnp.exp(jnp.sin(rows)), at * 4, 0)

    def loss(ws: Any, x: Any, at: Any) -> Any:
        for index in range(4):
            with jax.named_scope(f"block{index}"):
                w = lax.dynamic_index_in_dim(ws, (index + at) % 4, keepdims=False)
                x = around(block)(w, x, at + index)
        return jnp.mean(x**2)

    return jax.value_and_grad(loss)
