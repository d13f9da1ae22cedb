"""Distances of the results of remat and of recomputation from those of the plain step, leaf by leaf, with default
flags."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

import recompute
from recompute.benchmarks.peers.costs import arrays
from recompute.benchmarks.peers.peer import ALL, Built, Peer
from recompute.examples.closeness import units_of_rounding

SEEDS = 5
CLOSE_RATIO, CLOSE_UNITS = 1.5, 2.0
"""The largest distance of a close result, as a multiple of the distance of remat's result, or in units of rounding."""
MAX_UNITS = 8.0
"""The largest distance of any result, in units of rounding."""
MIN_CLOSE_SHARE = 0.95
"""The smallest share of close results."""


@dataclass(frozen=True)
class Leaf:
    """One result of a step, with its distances from the result of the plain step.

    A distance is the maximum of `max|a - b| / (eps × max|leaf|)` over all inputs.

    Attributes:
        name: The path of the result in the pytree of results.
        theirs, ours: The distances with remat and with recomputation.
    """

    name: str
    theirs: float
    ours: float

    @property
    def is_close(self) -> bool:
        """Whether recomputation is at most `CLOSE_RATIO` times as far from the plain step as remat, or within
        `CLOSE_UNITS`."""
        return self.ours <= max(CLOSE_RATIO * self.theirs, CLOSE_UNITS)


@dataclass(frozen=True)
class Distances:
    """The distances of all results of a step from the results of the plain step.

    Attributes:
        leaves: A leaf for each result.
        is_plain: Whether `recompute.jax.jit` ran the plain step. If so, the distances do not test a rewrite.
    """

    leaves: tuple[Leaf, ...]
    is_plain: bool = False

    @property
    def close_share(self) -> float:
        """The share of the results that are close."""
        return sum(leaf.is_close for leaf in self.leaves) / len(self.leaves)

    def far(self) -> list[Leaf]:
        """Return the results that are not close or exceed `MAX_UNITS`, the most distant first."""
        result = [leaf for leaf in self.leaves if not leaf.is_close or leaf.ours > MAX_UNITS]
        return sorted(result, key=lambda leaf: -leaf.ours)

    def missed(self) -> Iterator[str]:
        """Describe the bars that are missed: the share of close results, and the largest distance."""
        if self.close_share < MIN_CLOSE_SHARE:
            bar = f"{CLOSE_RATIO} × theirs and {CLOSE_UNITS:g}"
            yield f"{1 - self.close_share:.0%} of the results are farther than {bar}"
        if worst := [leaf for leaf in self.leaves if not leaf.ours <= MAX_UNITS]:
            yield f"results above {MAX_UNITS:g} units of rounding: {len(worst)}"


def distances(peer: Peer, size: str, seeds: Sequence[int] = range(SEEDS)) -> Distances:
    """Measure the distances with default flags of JAX and XLA.

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
        result = worst([compared(runs, seed) for seed in seeds])
    return replace(result, is_plain=any(entry.category is recompute.jax.NothingSaved for entry in text))


def compared(runs: Mapping[str, tuple[Built, Callable[..., Any]]], seed: int) -> list[Leaf]:
    """Run the three forms on the inputs of a seed, and return the distances of each result."""
    result = {name: run(*built.arguments(seed)) for name, (built, run) in runs.items()}
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(result["plain"])]
    # Only arrays are compared: trees may differ in other fields, such as a flag of a model that it is under remat.
    leaves = zip(names, *(arrays(result[form]) for form in ("plain", "theirs", "ours")), strict=True)
    return [Leaf(name, far(plain, theirs), far(plain, ours)) for name, plain, theirs, ours in leaves]


def far(plain: np.ndarray, other: np.ndarray) -> float:
    """Return the distance of two arrays in units of rounding; infinite if their shapes or types differ."""
    if plain.shape != other.shape or plain.dtype != other.dtype:
        return math.inf
    return 0.0 if plain.tobytes() == other.tobytes() else units_of_rounding(plain, other)


def worst(result: Sequence[Sequence[Leaf]]) -> Distances:
    """Return the largest distances of each result over all inputs."""
    columns = zip(*result, strict=True)
    return Distances(
        tuple(
            Leaf(column[0].name, max(leaf.theirs for leaf in column), max(leaf.ours for leaf in column))
            for column in columns
        )
    )
