"""Code that the steps share: meshes of eight devices, random arrays, and `jax.checkpoint` on request."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh


def device_mesh(shape: tuple[int, ...], names: tuple[str, ...]) -> Mesh:
    """Return a mesh of all devices of the host, with the given axis names."""
    return Mesh(np.array(jax.devices()).reshape(shape), names)


def normal(seed: int, *shape: int, scale: float = 0.1, dtype: Any = jnp.float32) -> jax.Array:
    """Draw an array from a normal distribution with standard deviation `scale`."""
    return (jax.random.normal(jax.random.key(seed), shape) * scale).astype(dtype)


def checkpoint_if(remat: bool) -> Callable[..., Any]:
    """Return `jax.checkpoint` if `remat` is true, and otherwise a decorator without effect."""
    return jax.checkpoint if remat else (lambda block: block)
