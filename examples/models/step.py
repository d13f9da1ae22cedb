"""The class `Step`, from which the exporter and the benchmarks build training steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Step:
    """A training step `function(*arguments)`, where `arguments` are pytrees of `jax.ShapeDtypeStruct`."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    donated: tuple[int, ...] = ()

    def lower(self) -> jax.stages.Lowered:
        return jax.jit(self.function, donate_argnums=self.donated).lower(*self.arguments)


def shape(*dimensions: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(dimensions, dtype)


def dropout(key: jax.Array, x: jax.Array, rate: float) -> jax.Array:
    """Apply inverted dropout, with a mask that the key determines."""
    mask = jax.random.bernoulli(key, 1.0 - rate, x.shape)
    return jnp.where(mask, x / (1.0 - rate), 0.0)


def maybe_checkpoint(block: Callable[..., Any], checkpoint: bool) -> Callable[..., Any]:
    """Return the block, wrapped in `jax.checkpoint` if `checkpoint` is true."""
    return jax.checkpoint(block) if checkpoint else block


def random_inputs(step: Step, seed: int = 0) -> tuple[Any, ...]:
    """Draw new arguments for one run, since runs consume donated arguments.

    Floats are small; Adam's second moments are positive. Integers are below 32, the size of the smallest vocabulary.
    """
    generator = np.random.default_rng(seed)

    def fill(path: jax.tree_util.KeyPath, like: jax.ShapeDtypeStruct) -> jax.Array:
        if not jnp.issubdtype(like.dtype, jnp.floating):
            return jnp.asarray(generator.integers(0, 32, like.shape), like.dtype)
        values = generator.normal(0.0, 0.1, like.shape)
        return jnp.asarray(np.abs(values) if "nu" in jax.tree_util.keystr(path) else values, like.dtype)

    return jax.tree_util.tree_map_with_path(fill, step.arguments)
