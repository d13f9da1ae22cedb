"""The results of a compiled JAX step as arrays, and the distance between two sets of results."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def arrays_of(results: Any) -> list[np.ndarray]:
    """Return the leaves of a pytree as arrays, with random keys replaced with their bits."""
    return [np.asarray(_without_key_type(leaf)) for leaf in jax.tree.leaves(results)]


def _without_key_type(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def largest_distance(expected: Any, actual: Any) -> float:
    """Return the largest distance of any result from the corresponding expected result.

    A distance is the largest difference of two elements, divided by the largest expected magnitude. If all expected
    elements are zero, the difference is not divided.
    """
    pairs = zip(arrays_of(expected), arrays_of(actual), strict=True)
    return max((_distance(*pair) for pair in pairs), default=0.0)


def _distance(expected: np.ndarray, actual: np.ndarray) -> float:
    expected, actual = expected.astype(np.float64), actual.astype(np.float64)
    return _largest(expected - actual) / (_largest(expected) or 1.0)


def _largest(array: np.ndarray) -> float:
    return float(np.max(np.abs(array), initial=0.0))
