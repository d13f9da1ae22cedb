"""Code that the steps share: the class of a step, wrappers that name and checkpoint blocks, and optimizers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Tree = Any


@dataclass(frozen=True)
class UnseenStep:
    """A training step `function(*arguments)`, whose arguments are pytrees of arrays or of shapes.

    Attributes:
        donate: The indices of the donated arguments.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    donate: tuple[int, ...] = ()

    def lower(self) -> jax.stages.Lowered:
        """Lower the step with `jax.jit`."""
        return jax.jit(self.function, donate_argnums=self.donate).lower(*self.arguments)


Builder = Callable[[bool, bool], UnseenStep]


@dataclass(frozen=True)
class Blocks:
    """A callable that runs blocks, with `jax.checkpoint` and with scope names on request.

    Attributes:
        checkpoint: Whether blocks run under `jax.checkpoint`.
        scopes: Whether blocks have scope names.
        inside: Whether the scope is inside the checkpointed function rather than around it. Users write both forms.
    """

    checkpoint: bool
    scopes: bool
    inside: bool = False

    def scope(self, name: str) -> AbstractContextManager[Any]:
        """Return a context with the scope name, or without effect if scopes were not requested."""
        return jax.named_scope(name) if self.scopes else nullcontext()

    def wrap(self, block: Callable[..., Any]) -> Callable[..., Any]:
        """Return the block, under `jax.checkpoint` if it was requested."""
        return jax.checkpoint(block) if self.checkpoint else block

    def __call__(self, name: str, block: Callable[..., Any], *arguments: Any) -> Any:
        if not self.inside:
            with self.scope(name):
                return self.wrap(block)(*arguments)

        def named(*inner: Any) -> Any:
            with self.scope(name):
                return block(*inner)

        return self.wrap(named)(*arguments)


def shape(*dimensions: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    """Return the shape and element type of an argument."""
    return jax.ShapeDtypeStruct(dimensions, dtype)


def integers(*dimensions: int) -> jax.ShapeDtypeStruct:
    """Return the shape of an integer argument."""
    return shape(*dimensions, dtype=jnp.int32)


def key_data(words: int = 2) -> jax.ShapeDtypeStruct:
    """Return the shape of raw key data: two integers for threefry, four for rbg."""
    return shape(words, dtype=jnp.uint32)


def sgd(parameters: Tree, gradients: Tree, rate: float = 0.01) -> Tree:
    """Return the parameters after one step of gradient descent."""
    return jax.tree.map(lambda p, g: p - rate * g, parameters, gradients)


def momentum(parameters: Tree, gradients: Tree, velocity: Tree, rate: float = 0.01, beta: float = 0.9) -> Tree:
    """Return the new parameters and the new velocity after one step with momentum."""
    velocity = jax.tree.map(lambda v, g: beta * v + g, velocity, gradients)
    return sgd(parameters, velocity, rate), velocity


def adam_state(parameters: Tree) -> Tree:
    """Return the shapes of Adam's state for the given parameters."""
    return {"mu": parameters, "nu": parameters, "count": integers()}


def adam(parameters: Tree, gradients: Tree, state: Tree, rate: float = 1e-3, decay: float = 0.0) -> Tree:
    """Return the new parameters and the new state after one step of Adam, or of AdamW if `decay` is not zero."""
    count = state["count"] + 1
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mu"], gradients)
    nu = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["nu"], gradients)
    first, second = 1 - 0.9**count, 1 - 0.999**count

    def move(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        return p - rate * (m / first / (jnp.sqrt(v / second) + 1e-8) + decay * p)

    return jax.tree.map(move, parameters, mu, nu), {"mu": mu, "nu": nu, "count": count}


def random_inputs(step: UnseenStep, seed: int = 0) -> tuple[Any, ...]:
    """Draw arguments for one run; arguments that are already arrays are unchanged.

    Floats are small and normally distributed, but Adam's second moments are positive. Integers are below 32, which is
    within the range of every vocabulary and table.
    """
    generator = np.random.default_rng(seed)

    def fill(path: tuple[Any, ...], like: Any) -> Any:
        if not isinstance(like, jax.ShapeDtypeStruct):
            return like
        if not jnp.issubdtype(like.dtype, jnp.floating):
            return jnp.asarray(generator.integers(0, 32, like.shape), like.dtype)
        values = generator.normal(0.0, 0.1, like.shape)
        return jnp.asarray(np.abs(values) if "nu" in jax.tree_util.keystr(path) else values, like.dtype)

    return jax.tree_util.tree_map_with_path(fill, step.arguments)
