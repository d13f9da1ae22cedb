"""Compare the results of remat and of recomputation, leaf by leaf, with those of the plain step. All three use the
default flags of JAX and XLA."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

import recompute
from recompute.benchmarks.harness.result_arrays import arrays_of
from recompute.benchmarks.peers.peer import ALL, Built, Peer
from recompute.examples.closeness import units_of_rounding

SEEDS = 5
CLOSE_RATIO, CLOSE_UNITS = 1.5, 2.0
"""A result is close if its distance is at most `CLOSE_RATIO` times the distance of remat's result, or at most
`CLOSE_UNITS` units of rounding."""
MAX_UNITS = 8.0
"""The largest allowed distance of any result, in units of rounding."""
MIN_CLOSE_SHARE = 0.95
"""The smallest allowed share of close results."""


@dataclass(frozen=True)
class Leaf:
    """One result of a step, with its distances from the plain step's result.

    A distance is the maximum of `max|a - b| / (eps × max|leaf|)` over all inputs.

    Attributes:
        name: The path of the result in the pytree of results.
        theirs, ours: The distances of remat's and of recomputation's result.
    """

    name: str
    theirs: float
    ours: float

    @property
    def is_close(self) -> bool:
        """Whether recomputation's result is close to the plain step's, by `CLOSE_RATIO` and `CLOSE_UNITS`."""
        return self.ours <= max(CLOSE_RATIO * self.theirs, CLOSE_UNITS)


@dataclass(frozen=True)
class Distances:
    """The distances of all results of a step from the plain step's results.

    Attributes:
        leaves: One entry for each result.
        is_plain: Whether `recompute.jax.jit` ran the plain step. If so, the distances say nothing about a rewrite.
    """

    leaves: tuple[Leaf, ...]
    is_plain: bool = False

    @property
    def close_share(self) -> float:
        """The share of the results that are close."""
        return sum(leaf.is_close for leaf in self.leaves) / len(self.leaves)

    def far_leaves(self) -> list[Leaf]:
        """Return the results that are not close or exceed `MAX_UNITS`, in order of decreasing distance."""
        result = [leaf for leaf in self.leaves if not leaf.is_close or leaf.ours > MAX_UNITS]
        return sorted(result, key=lambda leaf: -leaf.ours)

    def missed(self) -> Iterator[str]:
        """Yield a message for each unmet requirement on the share of close results and the largest distance."""
        if self.close_share < MIN_CLOSE_SHARE:
            limit = f"{CLOSE_RATIO} × the distance of remat and {CLOSE_UNITS:g} units of rounding"
            yield f"{1 - self.close_share:.0%} of the results have a distance above {limit}"
        if worst := [leaf for leaf in self.leaves if not leaf.ours <= MAX_UNITS]:
            yield f"{len(worst)} of {len(self.leaves)} results have a distance above {MAX_UNITS:g} units of rounding"


def distances(peer: Peer, size: str, seeds: Sequence[int] = range(SEEDS)) -> Distances:
    """Measure the distances of a step's results with the default flags of JAX and XLA.

    `recompute.jax.jit` may choose to run the plain step.
    """
    plain, theirs = peer.build(None, size), peer.build(ALL, size)
    with plain.context(), warnings.catch_warnings(record=True) as text:
        warnings.simplefilter("always", recompute.jax.NothingSaved)
        runs = {
            "plain": (plain, jax.jit(plain.step, **plain.options)),
            "theirs": (theirs, jax.jit(theirs.step, **theirs.options)),
            "ours": (plain, recompute.jax.jit(plain.step, **plain.options)),
        }
        result = largest_distances([leaf_distances(runs, seed) for seed in seeds])
    return replace(result, is_plain=any(entry.category is recompute.jax.NothingSaved for entry in text))


def leaf_distances(runs: Mapping[str, tuple[Built, Callable[..., Any]]], seed: int) -> list[Leaf]:
    """Run the three variants on the inputs drawn from a seed, and return the distances of each result."""
    result = {name: run(*built.arguments(seed)) for name, (built, run) in runs.items()}
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(result["plain"])]
    # Only arrays are compared, since trees may differ in other fields, such as a model's flag for remat.
    leaves = zip(names, *(arrays_of(result[form]) for form in ("plain", "theirs", "ours")), strict=True)
    return [Leaf(name, distance(plain, theirs), distance(plain, ours)) for name, plain, theirs, ours in leaves]


def distance(plain: np.ndarray, other: np.ndarray) -> float:
    """Return the distance between two arrays in units of rounding, or infinity if their shapes or types differ."""
    if plain.shape != other.shape or plain.dtype != other.dtype:
        return math.inf
    return 0.0 if plain.tobytes() == other.tobytes() else units_of_rounding(plain, other)


def largest_distances(result: Sequence[Sequence[Leaf]]) -> Distances:
    """Return each result's largest distances over all inputs."""
    columns = zip(*result, strict=True)
    return Distances(
        tuple(
            Leaf(column[0].name, max(leaf.theirs for leaf in column), max(leaf.ours for leaf in column))
            for column in columns
        )
    )
