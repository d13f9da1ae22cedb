"""The table of the steps, and functions that build the steps."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh

CASES: dict[str, ConsumerCase] = {}
BATCH, WIDTH = 160, 40
"""Extents that make XLA split reductions, and that are not powers of two."""
Around = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class ConsumerCase:
    """A step in the table `CASES`.

    Attributes:
        name: The name of the step.
        build: Builds the step. Its argument `around` wraps the blocks, and is `jax.checkpoint` or the identity.
        arguments: Creates new arguments for each run, since runs consume donated arguments.
        twin: Whether a second form of the step, with `jax.checkpoint`, is also measured.
        shardy: Whether the partitioner is Shardy.
        round_trip: The form in which the step passes through HLO: `shardy`, `stay` (calls must not be inlined),
            `inlinable`, or "" for none. A step with such a form has no twin.
        jit: Returns options of `jax.jit`.
    """

    name: str
    build: Callable[[Around], Callable[..., Any]]
    arguments: Callable[[], tuple[Any, ...]]
    twin: bool = True
    shardy: bool = True
    round_trip: str = ""
    jit: Callable[[], dict[str, Any]] = dict


def case(arguments: Callable[[], tuple[Any, ...]], name: str = "", **options: Any) -> Callable[[Any], Any]:
    """Return a decorator that adds a builder to the table under its name."""

    def add(build: Any) -> Any:
        title = name or build.__name__
        assert title not in CASES, f"two steps have the name {title!r}"
        CASES[title] = ConsumerCase(title, build, arguments, **options)
        return build

    return add


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged, in place of `jax.checkpoint`."""
    return function


def normal(seed: int, *shape: int, scale: float = 1.0, dtype: Any = jnp.float32) -> jax.Array:
    """Draw an array from a normal distribution with standard deviation `scale`."""
    return (jax.random.normal(jax.random.key(seed, impl="threefry2x32"), shape) * scale).astype(dtype)


def weights(count: int = 3, width: int = WIDTH, dtype: Any = jnp.float32) -> list[jax.Array]:
    """Draw one square matrix of shape (width, width) for each block."""
    return [normal(index, width, width, scale=0.3, dtype=dtype) for index in range(count)]


def weights_and_batch() -> tuple[Any, ...]:
    """Draw three square matrices and a batch."""
    return weights(), normal(9, BATCH, WIDTH)


def stacked_weights_and_batch() -> tuple[Any, ...]:
    """Draw four matrices in one array, for a scan, and a batch."""
    return jnp.stack(weights(4)), normal(9, BATCH, WIDTH)


def mesh(*sizes: int, names: str = "d") -> Mesh:
    """Return a mesh over the two devices. Each letter of `names` names an axis."""
    devices = np.array(jax.devices()[:2]).reshape(sizes or (2,))
    return Mesh(devices, tuple(names), axis_types=(AxisType.Auto,) * len(names))


def descend(block: Callable[..., Any], around: Around, update: float = 0.1) -> Callable[..., Any]:
    """Return a step of gradient descent that runs `block(w, x)` for each weight and minimizes the mean square."""

    def loss(ws: Any, x: Any) -> Any:
        for index, w in enumerate(ws):
            with jax.named_scope(f"block{index}"):
                x = around(block)(w, x)
        return jnp.mean(jnp.abs(x.astype(jnp.complex64 if jnp.iscomplexobj(x) else jnp.float32)) ** 2)

    def step(ws: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(ws, x)
        return value, jax.tree.map(lambda w, g: (w - update * jnp.conj(g)).astype(w.dtype), ws, gradient)

    return step


def layer(w: Any, x: Any) -> Any:
    """Apply a matrix product and four elementwise operations whose results the gradient reads."""
    return jnp.tanh(jnp.sin(jnp.exp(jnp.sin(x @ w))))


def scanned(body: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes the loss and the gradient of a scan over stacked weights."""

    def loss(ws: Any, x: Any) -> Any:
        return jnp.mean(jax.lax.scan(lambda x, w: (body(w, x), None), x, ws)[0] ** 2)

    return jax.value_and_grad(loss)
