"""Code that the steps share: meshes of eight devices, random arrays, weights, and functions that run blocks."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

MLP_SPEC = dict(expand=P(None, "m"), project=P("m", None))
"""The shardings of the two matrices of an MLP, whose hidden dimension is split along the axis m."""


def device_mesh(shape: tuple[int, ...], names: tuple[str, ...]) -> Mesh:
    """Return a mesh of all devices of the host, with the given axis names."""
    return Mesh(np.array(jax.devices()).reshape(shape), names)


def normal(seed: int, *shape: int, scale: float = 0.1, dtype: Any = jnp.float32) -> jax.Array:
    """Draw an array from a normal distribution with standard deviation `scale`."""
    return (jax.random.normal(jax.random.key(seed), shape) * scale).astype(dtype)


def mlp_parameters(layers: int, width: int, factor: int = 4, seed: int = 0) -> list[dict[str, jax.Array]]:
    """Draw the two matrices of an MLP for each layer. The hidden dimension is `factor` times the width."""
    hidden = factor * width
    return [
        dict(expand=normal(seed + 2 * i, width, hidden), project=normal(seed + 2 * i + 1, hidden, width))
        for i in range(layers)
    ]


def checkpoint_if(remat: bool) -> Callable[..., Any]:
    """Return `jax.checkpoint` if `remat` is true, and otherwise a decorator without effect."""
    return jax.checkpoint if remat else (lambda block: block)


def run_blocks(block: Callable[..., Any], parameters: Sequence[Any], x: Any, scope: str = "block") -> Any:
    """Apply `block(x, weights)` for the weights of each layer, under a scope name that ends in the layer's index."""
    for i, weights in enumerate(parameters):
        with jax.named_scope(f"{scope}{i}"):
            x = block(x, weights)
    return x


def gradient_builder(loss: Callable[..., Any], **options: Any) -> Callable[[bool], Callable[..., Any]]:
    """Return the function `build_step(remat)` of a step that computes a loss and its gradients.

    Args:
        loss: The loss, which has a keyword argument `remat`.
        **options: Options of `jax.value_and_grad`.
    """
    return lambda remat: jax.value_and_grad(partial(loss, remat=remat), **options)
