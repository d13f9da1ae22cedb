"""Ruin and recreate from the best plans so far: several seeds, copies in the forward pass, and longer runs."""

from __future__ import annotations

from collections.abc import Sequence

from .effort import CLOSED, OPEN, Bounds, Effort, closed, searched_on
from .incumbent import Incumbent
from .problem import Pair
from .search import Search

LONGER, MOST_ROUNDS = 3_000_000, 8000
"""Rounds of the longer anneal: `LONGER` divided by the number of operations, at most `MOST_ROUNDS`."""


def annealed(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> None:
    """Ruin and recreate from the best plans, each with its own seed."""
    starts = best.several or [("greedy", frozenset[Pair]())]
    annealed_from(best, search, effort, bounds, [starts[seed % len(starts)] for seed in range(effort.seeds)])


def annealed_from(
    best: Incumbent, search: Search, effort: Effort, bounds: Bounds, starts: Sequence[tuple[str, frozenset[Pair]]]
) -> None:
    """Ruin and recreate from each of these plans; plans above the budget are first brought within it."""
    problem, rounds = best.problem, effort.rounds_for(len(best.problem))
    good = (bounds.percent + CLOSED) * problem.total_cost / 100
    for seed, (by, start) in enumerate(starts if rounds else ()):
        if closed(best, bounds) or best.stopped():
            return
        best.progress(f"ruin and recreate from {by}, seed {seed + 1}: {rounds} rounds")
        pairs = search.annealed(best.budget, start, rounds, seed + 1, best.stopped, good)
        best.offer(pairs, f"{by} + ruin and recreate".replace(" + ruin and recreate +", " +"))


def from_the_start(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> Search:
    """On small problems, ruin and recreate with copies in the forward pass too. Returns the search to continue with:
    the wider one if it improved the plan."""
    earlier = best.problem.everywhere and best.problem.earliest > 0
    if not earlier or not searched_on(best, effort, bounds, OPEN):
        return search
    before, wider = best.percent, Search(best.problem, earliest=0)
    best.progress(f"with copies in the forward pass, {best.elapsed:.1f} s")
    best.offer(wider.repaired(best.budget), "greedy from the start")
    annealed(best, wider, effort, bounds)
    return wider if best.percent < before else search


def annealed_longer(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> None:
    """A longer, slower anneal from the best plan: it improves plans for which short runs end with different costs."""
    if effort.rounds is not None or best.pairs is None or not searched_on(best, effort, bounds, OPEN):
        return
    rounds = min(MOST_ROUNDS, LONGER // max(1, len(best.problem)))
    good = (bounds.percent + CLOSED) * best.problem.total_cost / 100
    best.progress(f"ruin and recreate, longer: {rounds} rounds, {best.elapsed:.1f} s")
    best.offer(search.annealed(best.budget, best.pairs, rounds, 2, best.stopped, good), "ruin and recreate, longer")
