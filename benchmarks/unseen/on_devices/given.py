"""Shared parts of the steps: meshes of eight devices, random numbers, and `jax.checkpoint` around a block on
request."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh


def M(shape: tuple[int, ...], names: tuple[str, ...]) -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(shape), names)


def N(seed: int, *shape: int, scale: float = 0.1, dtype: Any = jnp.float32) -> jax.Array:
    return (jax.random.normal(jax.random.key(seed), shape) * scale).astype(dtype)


def ck(remat: bool) -> Callable[..., Any]:
    return jax.checkpoint if remat else (lambda f: f)
