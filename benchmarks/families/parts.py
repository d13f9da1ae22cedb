"""Building blocks of the steps: layers, functions that apply a sequence of layers, updates, and the table of steps."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Wrap = Callable[..., Any]
"""A function that wraps a block or a loop body: the identity, or a variant of `jax.checkpoint`."""
STEPS: dict[str, Callable[[Wrap], Any]] = {}
draw = np.random.default_rng(0)


def step(make: Callable[[Wrap], Any]) -> Callable[[Wrap], Any]:
    """Add a step to `STEPS`. `make(wrap)` returns the step function and its arguments."""
    STEPS[make.__name__] = make
    return make


def normal(*shape: int) -> jax.Array:
    """Draw an array from a normal distribution with standard deviation 0.3."""
    return jnp.asarray(draw.normal(0, 0.3, shape), jnp.float32)


def layers(count: int, width: int = 32, hidden: int = 128) -> dict[str, jax.Array]:
    """Return the weights of residual layers, stacked along the first dimension."""
    return {"up": normal(count, width, hidden), "down": normal(count, hidden, width)}


def layer_of(stacked: Any, index: int) -> Any:
    """Return the weights of one layer from stacked weights."""
    return jax.tree.map(lambda leaf: leaf[index], stacked)


def mlp(x: Any, p: Any) -> Any:
    """Apply a residual MLP layer."""
    return x + jnp.tanh(jnp.sin(x @ p["up"]) @ p["down"])


def unrolled(wrap: Wrap, p: Any, x: Any, block: Wrap = mlp) -> Any:
    """Apply the blocks one after the other, without a loop in the program."""
    for index in range(len(jax.tree.leaves(p)[0])):
        x = wrap(block)(x, layer_of(p, index))
    return x


def scanned(wrap: Wrap, p: Any, x: Any, block: Wrap = mlp) -> Any:
    """Apply the blocks in a `lax.scan`."""
    return lax.scan(wrap(lambda x, q: (block(x, q), None)), x, p)[0]


def mean_square(x: Any) -> Any:
    """Return the mean of the squares of all elements."""
    return jnp.mean(x**2)


def loss_of(network: Wrap, wrap: Wrap) -> Wrap:
    """Return a function `loss(p, x)`, which computes the mean square of the network's output."""
    return lambda p, x: mean_square(network(wrap, p, x))


def descend(p: Any, gradient: Any, rate: float = 0.1) -> Any:
    """Return the parameters after one step of gradient descent."""
    return jax.tree.map(lambda w, g: w - rate * g, p, gradient)


def add(left: Any, right: Any) -> Any:
    """Add two trees of arrays."""
    return jax.tree.map(jnp.add, left, right)


def global_norm(tree: Any) -> Any:
    """Return the Euclidean norm of all leaves together."""
    return jnp.sqrt(sum(jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(tree)))
