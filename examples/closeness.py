"""How far the results of one compiled step are from those of another: in bits, in units of rounding, relatively."""

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
    """The largest distances over all results, which are numbered as leaves of a pytree."""

    leaves: int
    differing: frozenset[int]  # whose bits differ
    units: float  # max|a - b| / (eps × max|a|), eps of the leaf's type
    relative: float  # |a - b| / |a|, Euclidean norms

    @classmethod
    def of(cls, reference: Any, results: Any) -> Closeness:
        pairs = list(zip(arrays(reference), arrays(results), strict=True))
        return cls(
            leaves=len(pairs),
            differing=frozenset(number for number, (a, b) in enumerate(pairs) if bits(a) != bits(b)),
            units=max(units_of_rounding(a, b) for a, b in pairs),
            relative=max(relative_distance(a, b) for a, b in pairs),
        )

    @classmethod
    def worst(cls, result: Iterable[Closeness]) -> Closeness:
        """Of several runs: a leaf differs if it does in one of them."""
        each = list(result)
        (leaves,) = {entry.leaves for entry in each}
        differing = frozenset[int]().union(*(entry.differing for entry in each))
        return cls(leaves, differing, max(entry.units for entry in each), max(entry.relative for entry in each))

    def __str__(self) -> str:
        count = f"{len(self.differing)} of {self.leaves} results have other bits"
        return f"{count}, at most {self.units:.2g} units of rounding away, {self.relative:.1e} relatively"


def arrays(results: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


def bits(array: np.ndarray) -> bytes:
    """A NaN equals itself, and zeros keep their signs."""
    return array.tobytes()


def units_of_rounding(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, in the spacing of the type at the largest number of `a`. Integers are not rounded, so
    that a difference is infinite.
    """
    if not jnp.issubdtype(a.dtype, jnp.inexact):
        return 0.0 if np.array_equal(a, b) else math.inf
    far = _largest(_wide(a) - _wide(b))
    return _ratio(far, float(jnp.finfo(a.dtype).eps) * _largest(_wide(a)))


def relative_distance(a: np.ndarray, b: np.ndarray) -> float:
    return _ratio(float(np.linalg.norm((_wide(a) - _wide(b)).ravel())), float(np.linalg.norm(_wide(a).ravel())))


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _largest(array: np.ndarray) -> float:
    return float(np.max(np.abs(array), initial=0.0))


def _ratio(far: float, size: float) -> float:
    """Infinite where one of the arrays is not finite: such inputs compare nothing."""
    if not math.isfinite(far):
        return math.inf
    return far / size if size else math.inf if far else 0.0
