"""The definition of the compared steps, which are built plain or with their framework's own remat, in two sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Remat = str | None
ALL, DOTS = "all", "dots"
"""Policies of remat: recompute a whole block, or all of it except the matrix products."""
SMALL, LARGE = "small", "large"


@dataclass(frozen=True)
class Built:
    """A step function, with its arguments and its options for `jax.jit`.

    Attributes:
        step: The step function.
        arguments: Draws new arguments from a seed. Each run needs new ones, since it consumes donated arguments.
        options: Options of `jax.jit`.
        context: Returns the context in which JAX must run, such as a mesh.
    """

    step: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass(frozen=True)
class Peer:
    """One compared step: a model in a framework, with the framework's remat.

    Attributes:
        build: Builds the step for a remat policy (None for the plain step) and a size.
        remat: The name of the framework's remat, as users write it.
        segments: The scope names of the model's blocks, as the option `segments`; `auto` if blocks have no names.
        devices: The number of devices that the step needs.
    """

    build: Callable[[Remat, str], Built]
    remat: str
    segments: str = "auto"
    devices: int = 1


def policy_of(remat: Remat) -> Any:
    """Return the value of the argument `policy` for a framework's remat. None means that no value is saved."""
    return jax.checkpoint_policies.dots_saveable if remat == DOTS else None


def checkpointed(function: Callable[..., Any], remat: Remat) -> Callable[..., Any]:
    """Return the function wrapped in `jax.checkpoint` if `remat` is set, for models in plain JAX."""
    return function if remat is None else jax.checkpoint(function, policy=policy_of(remat))


def descent(loss: Callable[..., Any], rate: float = 0.01) -> Callable[..., Any]:
    """Return a function that runs one step of gradient descent on a loss, and returns the loss and the new weights."""

    def step(weights: Any, *batch: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(weights, *batch)
        return value, jax.tree.map(lambda w, g: w - rate * g, weights, gradient)

    return step


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Return the mean cross entropy of logits of shape (..., classes) and integer labels."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
    return -chosen.mean()


def matrix(draw: np.random.Generator, *shape: int) -> jax.Array:
    """Draw a matrix, scaled by the inverse square root of its number of inputs (all axes but the last)."""
    return jnp.asarray(draw.normal(0, np.prod(shape[:-1]) ** -0.5, shape), jnp.float32)


def texts(seed: int, rows: int, length: int, words: int) -> tuple[jax.Array, jax.Array]:
    """Draw token sequences. Return the tokens, and the token that follows each position."""
    tokens = np.random.default_rng(seed).integers(0, words, (rows, length + 1), dtype=np.int32)
    return jnp.asarray(tokens[:, :-1]), jnp.asarray(tokens[:, 1:])


def images(seed: int, rows: int, side: int, classes: int) -> tuple[jax.Array, jax.Array]:
    """Draw images of shape (rows, side, side, 3), and their labels."""
    draw = np.random.default_rng(seed)
    pixels = jnp.asarray(draw.normal(0, 1, (rows, side, side, 3)), jnp.float32)
    return pixels, jnp.asarray(draw.integers(0, classes, rows, dtype=np.int32))
