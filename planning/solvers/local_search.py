"""Local search over sets of copies, with the kernels of `kernels/`: greedy repair, reverse delete, and annealing by
ruin and recreate.

Copies are pairs (stage, operation); `problem.py` defines stages. A `LocalSearch` owns the arrays for one problem, and
every call is deterministic. The work is limited by a number of rounds, and by time only if the `stop` predicate depends
on time.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import numpy as np

from ...support.counted import counted
from .effort import CLOSED_GAP, LARGE_PROBLEM, OPEN_GAP, Bounds, Effort, is_closed, should_search_on
from .incumbent import Incumbent
from .kernels.board import (
    BEST_COPIES,
    BEST_COST,
    BEST_COUNT,
    EXTRA_COST,
    LOG_LENGTH,
    ORDERED_COPIES,
    OVERFLOW_BYTES,
    RANDOM_STATE,
    as_arrays,
    as_lists,
)
from .kernels.entries import CHOICE, PLAIN, Kernels
from .problem import Pair, Problem
from .problem_board import board_of
from .provenance import Improvement, Provenance
from .result import Stop, never_stop

NO_TRIAL_LIMIT = 1 << 60
"""A number of trials that no search reaches."""
GREEDY_TOLERANCE = 0.1
"""Tolerance of the greedy search on large problems; see `kernels/greedy.py`."""


@dataclass(frozen=True)
class Annealing:
    """The limits and the seed of one run of ruin and recreate.

    Attributes:
        rounds: The number of rounds.
        seed: The seed of the random numbers.
        stop: A predicate that ends the search.
        target_cost: The search ends when the copies cost at most this much. A negative value disables this condition.
    """

    rounds: int
    seed: int = 1
    stop: Stop = never_stop
    target_cost: float = -1.0


class LocalSearch:
    """A local search on one problem: greedy search, reverse delete and annealing. Callers check its results with
    `evaluate`.

    Args:
        problem: The problem.
        earliest_stage: The first stage in which copies may run; by default the first stage of the problem.
    """

    def __init__(self, problem: Problem, earliest_stage: int | None = None):
        self.problem = problem
        self._board, self._keys = board_of(problem, earliest_stage)
        self._kernels: Kernels | None = None
        self._tolerance = GREEDY_TOLERANCE if len(problem) > LARGE_PROBLEM else 0.0

    def peak_bytes(self, pairs: Collection[Pair]) -> int:
        """Return the peak of the step with these copies, in bytes."""
        with self._prepared_kernels() as kernels:
            self._fill(kernels, 0, pairs)
            return kernels.peak_bytes(self._board)

    def repair(self, budget: int, pairs: Collection[Pair] = (), trials: int = NO_TRIAL_LIMIT) -> frozenset[Pair] | None:
        """Add copies greedily until the peak is within the budget, then remove unnecessary copies.

        Args:
            budget: The budget in bytes.
            pairs: The copies to start from.
            trials: The maximum number of evaluated moves.

        Returns:
            The copies; None if the greedy search fails.
        """
        with self._prepared_kernels() as kernels:
            self._fill(kernels, budget, pairs)
            kernels.greedy(self._board, self._keys, self._tolerance, 0.0, True, trials)
            if self._board[OVERFLOW_BYTES] > 0:
                return None
            kernels.reverse_delete(self._board, True, 10)
            return self._pairs(kernels)

    def anneal(self, budget: int, pairs: Collection[Pair], annealing: Annealing) -> frozenset[Pair] | None:
        """Run rounds of ruin and recreate. Return the cheapest copies.

        Args:
            budget: The budget in bytes.
            pairs: The copies to start from. If they exceed the budget, the search first reduces the bytes above it.
            annealing: The number of rounds, the seed, and the conditions that end the search.

        Returns:
            The cheapest copies; None if no copies within the budget were found.
        """
        with self._prepared_kernels() as kernels:
            self._fill(kernels, budget, pairs)
            self._board[RANDOM_STATE] = 1 + annealing.seed * 7919 % 1_000_003
            self._board[BEST_COST] = -1
            if self._board[OVERFLOW_BYTES] == 0:
                kernels.record_best(self._board)
        chunk = _chunk(len(self.problem))
        step_cost = float(self.problem.total_cost)
        rounds = annealing.rounds
        for first in range(0, rounds, chunk):
            if annealing.stop() or 0 <= self._board[BEST_COST] <= annealing.target_cost:
                break
            with self._prepared_kernels() as kernels:
                kernels.anneal(self._board, self._keys, first, min(rounds, first + chunk), rounds, step_cost)
        if self._board[BEST_COST] < 0:
            return None
        return self._decode(BEST_COPIES, self._board[BEST_COUNT])

    @contextmanager
    def _prepared_kernels(self) -> Generator[Kernels, None, None]:
        """Provide the kernels to run next, with the board in the form that they expect."""
        kernels = CHOICE.kernels(len(self.problem))
        if kernels is PLAIN and self._kernels is None:
            self._board, self._keys = as_lists(self._board, self._keys)
        elif kernels is not PLAIN and self._kernels is PLAIN:
            self._board, self._keys = as_arrays(self._board, self._keys)
        self._kernels = kernels
        with CHOICE.timed(kernels):
            yield kernels

    @property
    def cost(self) -> int:
        """The cost of the copies in the current state."""
        return int(self._board[EXTRA_COST])

    def _fill(self, kernels: Kernels, budget: int, pairs: Iterable[Pair]) -> None:
        """Set the state of the board to these copies, under the given budget."""
        rows = np.array(sorted(pairs), np.int64).reshape(-1, 2)
        kernels.reset(self._board, budget)
        if len(rows):
            columns = [np.ascontiguousarray(rows[:, index]) for index in range(2)]
            stages, operations = [column.tolist() for column in columns] if kernels is PLAIN else columns
            kernels.add_copies(self._board, cast("list[int]", stages), cast("list[int]", operations))
        self._board[LOG_LENGTH] = 0

    def _pairs(self, kernels: Kernels) -> frozenset[Pair]:
        """Return the copies of the current state, as (stage, operation) pairs."""
        count = kernels.list_copies(self._board, ORDERED_COPIES)
        return self._decode(ORDERED_COPIES, count)

    def _decode(self, part: int, count: int) -> frozenset[Pair]:
        """Return the first `count` copies of a part that `list_copies` has written, as (stage, operation) pairs."""
        stride, start = len(self.problem) + 1, self._board[part]
        encoded = self._board[start : start + count]
        return frozenset([(int(pair) // stride, int(pair) % stride) for pair in encoded])


def _chunk(operations: int) -> int:
    """Return the number of rounds of ruin and recreate between two calls of `stop`."""
    return max(1, min(200, 20_000 // max(1, operations)))


LONG_ROUNDS, MAX_LONG_ROUNDS = 3_000_000, 8000
"""The number of rounds of the longer annealing is `LONG_ROUNDS` divided by the number of operations, but at most
`MAX_LONG_ROUNDS`."""


def anneal_best(best: Incumbent, search: LocalSearch, effort: Effort, bounds: Bounds) -> None:
    """Run ruin and recreate from the best plans, each with a different seed. See `anneal_from` for the arguments."""
    starts = best.best_plans or [(Provenance("greedy"), frozenset[Pair]())]
    anneal_from(best, search, effort, bounds, [starts[seed % len(starts)] for seed in range(effort.seeds)])


def anneal_from(
    best: Incumbent,
    search: LocalSearch,
    effort: Effort,
    bounds: Bounds,
    starts: Sequence[tuple[Provenance, frozenset[Pair]]],
) -> None:
    """Run ruin and recreate from several plans.

    Args:
        best: The incumbent, to which the results are offered.
        search: The search to run.
        effort: The limits of the search.
        bounds: The lower bounds; the search ends once the gap is closed.
        starts: The plans to start from, which may exceed the budget, with their provenances.
    """
    rounds = effort.rounds_for(len(best.problem))
    for seed, (provenance, start) in enumerate(starts if rounds else ()):
        if is_closed(best, bounds) or best.should_stop():
            return
        best.progress(f"ruin and recreate from {provenance}, seed {seed + 1}: {counted(rounds, 'round')}")
        annealing = Annealing(rounds, seed + 1, best.should_stop, _closing_cost(best, bounds))
        pairs = search.anneal(best.budget, start, annealing)
        best.offer(pairs, provenance.with_improvement(Improvement.RUIN_AND_RECREATE))


def _closing_cost(best: Incumbent, bounds: Bounds) -> float:
    """Return the cost of copies at which the gap to the bound is closed."""
    return (bounds.percent + CLOSED_GAP) * best.problem.total_cost / 100


def anneal_with_forward_copies(best: Incumbent, search: LocalSearch, effort: Effort, bounds: Bounds) -> LocalSearch:
    """Run ruin and recreate on a small problem, with copies in the forward pass allowed. Returns the search to continue
    with: the search that allows such copies if it improved the plan, otherwise the given search."""
    is_possible = best.problem.allows_forward_copies and best.problem.earliest_stage > 0
    if not is_possible or not should_search_on(best, effort, bounds, OPEN_GAP):
        return search
    percent_before = best.percent
    wider = LocalSearch(best.problem, earliest_stage=0)
    best.progress(f"with copies in the forward pass, {best.elapsed_seconds:.1f} s")
    best.offer(wider.repair(best.budget), Provenance("greedy from the start"))
    anneal_best(best, wider, effort, bounds)
    return wider if best.percent < percent_before else search


def anneal_longer(best: Incumbent, search: LocalSearch, effort: Effort, bounds: Bounds) -> None:
    """Anneal longer and more slowly from the best plan, because on some problems short runs end at different costs."""
    if effort.rounds is not None or best.pairs is None or not should_search_on(best, effort, bounds, OPEN_GAP):
        return
    rounds = min(MAX_LONG_ROUNDS, LONG_ROUNDS // max(1, len(best.problem)))
    best.progress(f"ruin and recreate, longer: {counted(rounds, 'round')}, {best.elapsed_seconds:.1f} s")
    annealing = Annealing(rounds, 2, best.should_stop, _closing_cost(best, bounds))
    pairs = search.anneal(best.budget, best.pairs, annealing)
    best.offer(pairs, Provenance("ruin and recreate, longer"))
