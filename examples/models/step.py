"""What every example hands to the exporter and to the benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Step:
    """A training step: `function(*arguments)`, where `arguments` are pytrees of `jax.ShapeDtypeStruct`."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    donated: tuple[int, ...] = ()

    def lower(self) -> jax.stages.Lowered:
        return jax.jit(self.function, donate_argnums=self.donated).lower(*self.arguments)


def shape(*dimensions: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(dimensions, dtype)


def dropout(key: jax.Array, x: jax.Array, rate: float) -> jax.Array:
    """Inverted dropout with an explicit key: the same key gives the same mask."""
    mask = jax.random.bernoulli(key, 1.0 - rate, x.shape)
    return jnp.where(mask, x / (1.0 - rate), 0.0)


def maybe_checkpoint(block: Callable[..., Any], checkpoint: bool) -> Callable[..., Any]:
    """The block itself, or the block under `jax.checkpoint`."""
    return jax.checkpoint(block) if checkpoint else block
