"""Steps that call the host: prints, pure callbacks and ordered writes, in blocks and in loops."""

# pyright: basic

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.experimental.compute_on import compute_on

from recompute.benchmarks.consumers.case import (
    Around,
    case,
    descend,
    layer,
    scanned,
    stacked_weights_and_batch,
    weights_and_batch,
)


def _ignore(*_: Any) -> None:
    return None


def _host(function: Any, x: jax.Array) -> jax.Array:
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(lambda x: np.asarray(function(np.asarray(x)), x.dtype), shape, x)


@jax.custom_vjp
def host_sine(x: jax.Array) -> jax.Array:
    """Compute a sine with numpy on the host."""
    return _host(np.sin, x)


host_sine.defvjp(lambda x: (host_sine(x), x), lambda x, g: (_host(np.cos, x) * g,))


@case(weights_and_batch)
def debug_in_block(around: Around) -> Any:
    """Build a step with a debug callback in each block."""

    def block(w: Any, x: Any) -> Any:
        y = layer(w, x)
        jax.debug.callback(_ignore, y.sum())
        return jnp.sin(y) * y

    return descend(block, around)


@case(weights_and_batch)
def print_in_step(around: Around) -> Any:
    """Build a step that prints in order, outside its gradient."""
    step = descend(layer, around)

    def printing(ws: Any, x: Any) -> Any:
        value, ws = step(ws, x)
        jax.debug.print("", ordered=True)
        return value, ws

    return printing


@case(weights_and_batch)
def pure_callback_in_block(around: Around) -> Any:
    """Build a step with a pure callback in each block."""
    return descend(lambda w, x: jnp.tanh(host_sine(jnp.exp(jnp.sin(x @ w)))), around)


@case(weights_and_batch, twin=False)
def ordered_io(around: Around) -> Any:
    """Build a step with ordered host writes between the blocks and after the update."""

    def block(w: Any, x: Any) -> Any:
        y = layer(w, x)
        io_callback(_ignore, None, jax.lax.stop_gradient(y.mean()), ordered=True)
        return y

    step = descend(block, lambda f: f)

    def writing(ws: Any, x: Any) -> Any:
        value, ws = step(ws, x)
        io_callback(_ignore, None, value, ordered=True)
        return value, ws

    return writing


@case(stacked_weights_and_batch)
def callbacks_in_scan(around: Around) -> Any:
    """Build a step with pure callbacks and debug callbacks in a scan."""

    def body(w: Any, x: Any) -> Any:
        y = host_sine(jnp.exp(jnp.sin(x @ w)))
        jax.debug.callback(_ignore, y[0, 0])
        return jnp.tanh(y)

    return scanned(around(body))


@case(stacked_weights_and_batch, twin=False)
def ordered_debug_in_scan(around: Around) -> Any:
    """Build a step with ordered debug callbacks in a scan."""

    def body(w: Any, x: Any) -> Any:
        y = layer(w, x)
        jax.debug.callback(_ignore, jax.lax.stop_gradient(y[0, 0]), ordered=True)
        return jnp.sin(y)

    return scanned(body)


@case(weights_and_batch)
def on_the_host(around: Around) -> Any:
    """Build a step with a part of each block under `compute_on`, which lowers to a call with attributes."""

    def part(x: Any) -> Any:
        with compute_on("device_host"):
            return jax.jit(lambda x: jnp.sin(x) * 2)(x)

    return descend(lambda w, x: jnp.tanh(part(jnp.exp(jnp.sin(x @ w)))), around)
