"""Compute lower bounds on the extra cost with the coarse-stage program (`stage_program.py`), and derive copies from its
solutions.

First the relaxation is solved at about a dozen single cuts. Then the integer program is solved at the best of these
cuts, because integrality raises the bound more than additional cuts would. Every bound is valid, and the highest one is
kept. `more_cuts.py` continues with several cuts at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from .first_need import copies_at_first_need
from .integer_program import ProgramLimits, ProgramSolution, solve
from .problem import Ints, Pair, Problem
from .result import Stop, never_stop
from .sequence import evaluate, sequence_of
from .stage_program import StageProgram, stage_program

CUT_OFFSETS = (-1, 0, 1, 2, 3, 4, 6, 9, 13, 20)
"""Offsets of candidate cuts from the first backward operation: the best cut is usually a few operations after it."""
MAX_SINGLE_CUTS = 3
"""Maximum number of single cuts at which the integer program is solved. The cuts with the highest bounds of the relaxed
program are chosen, because they limit the plan the most."""
SOLVED_GAP = 1e-3
"""The integer program stops once the gap between cost and bound is at most this value, in percentage points."""
ROUNDING_GAP = 1e-5
"""A margin for floating-point errors of HiGHS, subtracted from each bound, in percentage points."""


@dataclass
class CutBounds:
    """The best lower bound so far, from coarse-stage programs at cuts.

    Attributes:
        problem, budget: The problem, and its budget in bytes.
        stop: A predicate that ends the search.
        seconds, nodes: The limits for solving each program.
        percent: The lower bound on the extra cost, in percent of the cost of the plain step.
        bound_by: The cuts that prove the bound.
        infeasible: The cuts that prove the budget infeasible; "" if there is no such proof.
        starts: Starting solutions, as pairs of a name and copies. The copies may exceed the budget between the cuts.
        best_cut: The best single cut; -1 if there is none.
    """

    problem: Problem
    budget: int
    stop: Stop = never_stop
    seconds: float | None = None
    nodes: int = 2000
    percent: float = 0.0
    bound_by: str = "costs are not negative"
    infeasible: str = ""
    starts: list[tuple[str, frozenset[Pair]]] = field(default_factory=list[tuple[str, frozenset[Pair]]])
    best_cut: int = -1

    @property
    def best_start_name(self) -> str:
        """The name of the starting solution from the best single cut."""
        return _name_of([self.best_cut])

    def solve_single_cuts(self) -> None:
        """Solve the programs with one cut each. Update the bound, and add the solutions to the starts."""
        relaxed = list[tuple[float, int, StageProgram]]()
        for cut in cuts_to_try(self.problem):
            if self.stop():
                return
            stages = stage_program(self.problem, self.budget, [cut])
            answer = solve(stages.program, False, limits=ProgramLimits(self.seconds, stop=self.stop))
            if self._record(answer, [cut], "relaxed"):
                return
            relaxed.append((answer.bound, cut, stages))
        relaxed.sort(key=lambda entry: (-entry[0], entry[1]))
        for _, _, stages in relaxed[:MAX_SINGLE_CUTS]:
            if not self.stop():
                answer = self._solve(stages, (), self.nodes, SOLVED_GAP)
                if self.infeasible or answer.values is None:
                    return

    def solve_cuts(self, cuts: Sequence[int], plan: Collection[Pair], nodes: int, gap: float = SOLVED_GAP) -> None:
        """Solve the integer program with these cuts. Update the bound, and add the solution to the starts.

        Args:
            cuts: The operations of the cuts.
            plan: The starting solution; empty for none.
            nodes: The limit of branching nodes.
            gap: The gap between cost and bound at which the solver stops, in percentage points.
        """
        self._solve(stage_program(self.problem, self.budget, cuts), plan, nodes, gap)

    def _solve(self, stages: StageProgram, plan: Collection[Pair], nodes: int, gap: float) -> ProgramSolution:
        start = stages.point(self.problem, plan) if plan else None
        answer = solve(stages.program, start=start, limits=ProgramLimits(self.seconds, nodes, gap, self.stop))
        self._record(answer, stages.cuts, "integral")
        if answer.values is not None:
            self.starts.append((_name_of(stages.cuts), _copies(self.problem, stages, answer)))
        return answer

    def _record(self, answer: ProgramSolution, cuts: Sequence[int], kind: str) -> bool:
        """Update the bound with an answer of HiGHS. Returns whether the answer proves that no schedule is within the
        budget."""
        if answer.infeasible:
            self.infeasible = f"{_name_of(cuts)} ({kind})"
        elif answer.bound - ROUNDING_GAP > self.percent:
            self.percent, self.bound_by = answer.bound - ROUNDING_GAP, f"{_name_of(cuts)}, {kind}"
            self.best_cut = cuts[0] if len(cuts) == 1 else self.best_cut
        return answer.infeasible


def cuts_to_try(problem: Problem) -> list[int]:
    """Return the single cuts to try: around the start of the backward pass, and at the peak of the plain step."""
    plain = evaluate(problem, sequence_of(problem, ()))
    peaks = np.argsort(-plain.bytes_at, kind="stable")[:1].tolist()
    candidates = [
        *(problem.cut_center + offset for offset in CUT_OFFSETS),
        *(peak + offset for peak in peaks for offset in (0, 1)),
    ]
    return sorted({cut for cut in candidates if 0 <= cut < len(problem)})


def min_distance(problem: Problem) -> int:
    """Return the largest distance, in operations, at which two cuts are too close to each other."""
    return max(1, len(problem) // 128)


def places_above_budget(problem: Problem, pairs: Collection[Pair], budget: int) -> list[int]:
    """Return the operations in whose stages the copies exceed the budget, in order of decreasing overflow. Operations
    within `min_distance` of an operation earlier in this order are left out."""
    excess = overflow(problem, pairs, budget)
    places = list[int]()
    for t in np.argsort(-excess, kind="stable").tolist():
        if not excess[t]:
            break
        if all(abs(t - other) > min_distance(problem) for other in places):
            places.append(t)
    return places


def overflow(problem: Problem, pairs: Collection[Pair], budget: int) -> Ints:
    """Return the bytes above the budget in the stage of each operation, as an array with one entry per operation.

    Args:
        problem: The problem.
        pairs: The copies.
        budget: The budget in bytes.
    """
    sequence = sequence_of(problem, pairs)
    peaks = np.zeros(len(problem) + 1, np.int64)
    np.maximum.at(peaks, _stages(problem, sequence), evaluate(problem, sequence).bytes_at)
    return np.maximum(0, peaks[: len(problem)] - budget)


def add_separating_cuts(cuts: Collection[int], overflows: Collection[Ints], distance: int) -> tuple[int, ...]:
    """Return the cuts, extended until each previous solution exceeds the budget at one of them.

    Each new cut is placed where the largest number of remaining solutions exceed the budget.

    Args:
        cuts: The first cuts.
        overflows: For each solution, the bytes above the budget, by operation.
        distance: The number of operations that two cuts should be apart, if possible.

    Returns:
        All cuts, in ascending order.
    """
    extended = list(cuts)
    while remaining := [excess for excess in overflows if excess.any() and not excess[extended].any()]:
        # Ties are broken by the overflow in bytes.
        total = np.sum([(excess > 0) + excess / (1 + np.sum(remaining)) for excess in remaining], axis=0)
        apart = total.copy()
        for cut in extended:
            apart[max(0, cut - distance) : cut + distance + 1] = 0
        extended.append(int(np.argmax(apart if apart.any() else total)))
    return tuple(sorted(extended))


def _stages(problem: Problem, sequence: Ints) -> Ints:
    """Return the stage of each position in the sequence: the number of first executions before it."""
    first = np.zeros(len(sequence), np.int64)
    first[np.unique(sequence, return_index=True)[1]] = 1
    return np.minimum(np.cumsum(first) - first, len(problem))


def cut_pairs(problem: Problem, cut: int, count: int = 8) -> Iterator[tuple[int, int]]:
    """Yield pairs of cuts: `cut`, and one of up to `count` cuts that are evenly spaced over the operations after it."""
    n = len(problem)
    for share in range(1, count + 1):
        other = cut + (n - 1 - cut) * share // (count + 1)
        if other != cut:
            yield cut, other


def _name_of(cuts: Sequence[int]) -> str:
    shown = ", ".join(map(str, cuts)) if len(cuts) <= 2 else f"{cuts[0]} … {cuts[-1]}"
    return f"cut at {shown}" if len(cuts) == 1 else f"{len(cuts)} cuts at {shown}"


def _copies(problem: Problem, stages: StageProgram, answer: ProgramSolution) -> frozenset[Pair]:
    """Return the copies of a solution. Between two cuts, each recomputed operation is copied at its first use."""
    assert answer.values is not None
    pairs = set[Pair]()
    ends = (*stages.cuts[1:], len(problem))
    live_storages = [
        *(stages.alive(answer.values, k) for k in range(len(stages.cuts))),
        np.flatnonzero(problem.is_output).tolist(),
    ]
    for k, cut in enumerate(stages.cuts):
        reruns = stages.recomputed(answer.values, k)
        pairs |= copies_at_first_need(
            problem, cut, alive=live_storages[k], copyable=reruns, end=ends[k], live_at_end=live_storages[k + 1]
        )
    return frozenset(pairs)
