"""Measure the distance between the results of two compiled steps: the number of results that differ, and the largest
difference in multiples of the unit roundoff."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Closeness:
    """The largest distances between two sets of results, over all leaves of their pytrees.

    Attributes:
        leaves: The number of leaves.
        differing: The indices of the leaves that differ in any bit.
        units: The maximum of max|a - b| / (eps × max|a|), with the eps of the leaf's type.
        relative: The maximum of |a - b| / |a|, in Euclidean norms.
    """

    leaves: int
    differing: frozenset[int]
    units: float
    relative: float

    @classmethod
    def of(cls, reference: Any, results: Any) -> Closeness:
        """Compare the results with the reference, leaf by leaf."""
        pairs = list(zip(arrays(reference), arrays(results), strict=True))
        return cls(
            leaves=len(pairs),
            differing=frozenset(index for index, (a, b) in enumerate(pairs) if bits(a) != bits(b)),
            units=max(units_of_rounding(a, b) for a, b in pairs),
            relative=max(relative_distance(a, b) for a, b in pairs),
        )

    @classmethod
    def largest(cls, runs: Iterable[Closeness]) -> Closeness:
        """Return the largest distances over all runs. A leaf differs if it differs in any run."""
        each = list(runs)
        (leaves,) = {entry.leaves for entry in each}
        differing = frozenset[int]().union(*(entry.differing for entry in each))
        return cls(leaves, differing, max(entry.units for entry in each), max(entry.relative for entry in each))

    def __str__(self) -> str:
        count = f"{len(self.differing)} of {self.leaves} results differ"
        return f"{count}, by at most {self.units:.2g} units of rounding, and by {self.relative:.1e} in relative terms"


def arrays(results: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


def bits(array: np.ndarray) -> bytes:
    """Return the bytes of an array, so that a NaN equals itself, and 0.0 differs from -0.0."""
    return array.tobytes()


def units_of_rounding(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference, in multiples of the type's unit roundoff times the largest magnitude in `a`.

    Integers are not rounded, so a difference between them is infinite.
    """
    if not jnp.issubdtype(a.dtype, jnp.inexact):
        return 0.0 if np.array_equal(a, b) else math.inf
    difference = _largest(_wide(a) - _wide(b))
    return _ratio(difference, float(jnp.finfo(a.dtype).eps) * _largest(_wide(a)))


def relative_distance(a: np.ndarray, b: np.ndarray) -> float:
    return _ratio(float(np.linalg.norm((_wide(a) - _wide(b)).ravel())), float(np.linalg.norm(_wide(a).ravel())))


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _largest(array: np.ndarray) -> float:
    return float(np.max(np.abs(array), initial=0.0))


def _ratio(difference: float, size: float) -> float:
    """Return the difference divided by the size, or infinity if an array is not finite."""
    if not math.isfinite(difference):
        return math.inf
    return difference / size if size else math.inf if difference else 0.0
