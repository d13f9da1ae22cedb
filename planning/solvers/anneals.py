"""Ruin and recreate from the best plans so far: from several seeds, with copies in the forward pass too, and longer."""

from __future__ import annotations

from collections.abc import Sequence

from .effort import CLOSED, OPEN, Bounds, Effort, closed, searched_on
from .incumbent import Incumbent
from .problem import Pair
from .search import Search

LONGER, MOST_ROUNDS = 3_000_000, 8000
"""Rounds of the longer anneal: so many by the operations of the problem, and at most."""


def annealed(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> None:
    """Ruin and recreate from the best plans, each with a seed of its own."""
    starts = best.several or [("greedy", frozenset[Pair]())]
    annealed_from(best, search, effort, bounds, [starts[seed % len(starts)] for seed in range(effort.seeds)])


def annealed_from(
    best: Incumbent, search: Search, effort: Effort, bounds: Bounds, starts: Sequence[tuple[str, frozenset[Pair]]]
) -> None:
    """Ruin and recreate from each of these; the first goal is the budget, where they are above it."""
    problem, rounds = best.problem, effort.rounds_for(len(best.problem))
    good = (bounds.percent + CLOSED) * problem.total_cost / 100
    for seed, (by, start) in enumerate(starts if rounds else ()):
        if closed(best, bounds) or best.stopped():
            return
        best.progress(f"ruin and recreate from {by}, seed {seed + 1}: {rounds} rounds")
        found = search.annealed(best.budget, start, rounds, seed + 1, best.stopped, good)
        best.offer(found, f"{by} + ruin and recreate".replace(" + ruin and recreate +", " +"))


def from_the_start(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> Search:
    """Ruin and recreate with copies in the forward pass too, on what is small: who searches on, where that helps."""
    earlier = best.problem.everywhere and best.problem.earliest > 0
    if not earlier or not searched_on(best, effort, bounds, OPEN):
        return search
    before, wider = best.percent, Search(best.problem, earliest=0)
    best.progress(f"with copies in the forward pass, {best.elapsed:.1f} s")
    best.offer(wider.repaired(best.budget), "greedy from the start")
    annealed(best, wider, effort, bounds)
    return wider if best.percent < before else search


def annealed_longer(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> None:
    """Once more and slower, from the best plan: where short runs end apart, this one finds more than they do."""
    if effort.rounds is not None or best.pairs is None or not searched_on(best, effort, bounds, OPEN):
        return
    rounds = min(MOST_ROUNDS, LONGER // max(1, len(best.problem)))
    good = (bounds.percent + CLOSED) * best.problem.total_cost / 100
    best.progress(f"ruin and recreate, longer: {rounds} rounds, {best.elapsed:.1f} s")
    best.offer(search.annealed(best.budget, best.pairs, rounds, 2, best.stopped, good), "ruin and recreate, longer")
