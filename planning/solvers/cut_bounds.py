"""Lower bounds by the coarse-stage program, and the copies that its solutions say.

First the relaxation at about a dozen single cuts, then the integer program at the best few of them: whole operations
matter more than more time steps. Then pairs of cuts, and on small problems up to a dozen at once, with the best plan as
a start: each where what the programs before have said, and no cut forbids, is above the budget, as with cutting planes.
Every one of them is sound; the highest counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from .integer_program import Answer, solve
from .materialise import at_first_need
from .problem import Ints, Pair, Problem
from .result import Stop, never
from .sequence import evaluate, sequence_of
from .stage_program import StageProgram, stage_program

BEHIND = (-1, 0, 1, 2, 3, 4, 6, 9, 13, 20)
"""Cuts that are tried, counted from the first backward operation: the best is mostly a few operations behind it."""
BEST_CUTS = 3
TOLERANCE = 1e-3
"""Points between cost and bound at which the integer program stops."""
ROUNDING = 1e-5
"""What is taken off a bound, in points, for arithmetic in doubles."""


@dataclass
class CutBounds:
    """What is proved so far, in percent of the step: `percent` and `by`; `infeasible`, by which cuts no schedule keeps
    the budget; `starts`, copies that solutions say, not within the budget everywhere; `best_cut`,
    the best single one."""

    problem: Problem
    budget: int
    stop: Stop = never
    seconds: float | None = None
    nodes: int = 2000
    percent: float = 0.0
    by: str = "nothing is free"
    infeasible: str = ""
    starts: list[tuple[str, frozenset[Pair]]] = field(default_factory=list[tuple[str, frozenset[Pair]]])
    best_cut: int = -1

    @property
    def named_best(self) -> str:
        """What the start of the best single cut is called."""
        return _named([self.best_cut])

    def single_cuts(self) -> None:
        """One cut each; raises what is proved, and adds starts."""
        relaxed = list[tuple[float, int, StageProgram]]()
        for cut in cuts_to_try(self.problem):
            if self.stop():
                return
            stages = stage_program(self.problem, self.budget, [cut])
            answer = solve(stages.program, integral=False, seconds=self.seconds, stop=self.stop)
            if self._take(answer, [cut], "relaxed"):
                return
            relaxed.append((answer.bound, cut, stages))
        relaxed.sort(key=lambda one: (-one[0], one[1]))
        for _, _, stages in relaxed[:BEST_CUTS]:
            if not self.stop() and self._integral(stages, ()):
                return

    def cuts(self, cuts: Sequence[int], plan: Collection[Pair], nodes: int, gap: float = TOLERANCE) -> None:
        """The integer program at these cuts, with a plan as its start; what it says as a start is kept."""
        self._solved(stage_program(self.problem, self.budget, cuts), plan, nodes, gap)

    def _integral(self, stages: StageProgram, plan: Collection[Pair]) -> bool:
        answer = self._solved(stages, plan, self.nodes, TOLERANCE)
        return bool(self.infeasible) or answer.values is None

    def _solved(self, stages: StageProgram, plan: Collection[Pair], nodes: int, gap: float) -> Answer:
        start = stages.point(self.problem, plan) if plan else None
        answer = solve(stages.program, start=start, seconds=self.seconds, nodes=nodes, gap=gap, stop=self.stop)
        self._take(answer, stages.cuts, "integral")
        if answer.values is not None:
            self.starts.append((_named(stages.cuts), _copies(self.problem, stages, answer)))
        return answer

    def _take(self, answer: Answer, cuts: Sequence[int], how: str) -> bool:
        if answer.infeasible:
            self.infeasible = f"{_named(cuts)} ({how})"
        elif answer.bound - ROUNDING > self.percent:
            self.percent, self.by = answer.bound - ROUNDING, f"{_named(cuts)}, {how}"
            self.best_cut = cuts[0] if len(cuts) == 1 else self.best_cut
        return answer.infeasible


def cuts_to_try(problem: Problem) -> list[int]:
    """Around the beginning of the backward pass, and around the peak of the plain step."""
    n = len(problem)
    first = problem.earliest if problem.earliest > 0 else n // 2
    plain = evaluate(problem, sequence_of(problem, ()))
    top = np.argsort(-plain.bytes_at, kind="stable")[:1].tolist()
    wanted = [*(first + step for step in BEHIND), *(at + step for at in top for step in (0, 1))]
    return sorted({cut for cut in wanted if 0 <= cut < n})


def near(problem: Problem) -> int:
    """Operations so near to each other are one place."""
    return max(1, len(problem) // 128)


def above_budget(problem: Problem, pairs: Collection[Pair], budget: int) -> list[int]:
    """Where the copies are above the budget, the most so first: of operations near each other one."""
    over, found = overflow(problem, pairs, budget), list[int]()
    for t in np.argsort(-over, kind="stable").tolist():
        if not over[t]:
            break
        if all(abs(t - other) > near(problem) for other in found):
            found.append(t)
    return found


def overflow(problem: Problem, pairs: Collection[Pair], budget: int) -> Ints:
    """Bytes above the budget in the stage of each operation."""
    sequence = sequence_of(problem, pairs)
    peaks = np.zeros(len(problem) + 1, np.int64)
    np.maximum.at(peaks, _stages(problem, sequence), evaluate(problem, sequence).bytes_at)
    return np.maximum(0, peaks[: len(problem)] - budget)


def cutting_off(cuts: Collection[int], overflows: Collection[Ints], near: int) -> tuple[int, ...]:
    """The cuts, and more of them, so that none of what was said keeps the budget at all of them: each where most of
    that which does is above it. `overflows`: of each that was said; `near`: no two cuts are as near, if that can be."""
    found = list(cuts)
    while left := [one for one in overflows if one.any() and not one[found].any()]:
        # Of equals that where the bytes are most.
        total = np.sum([(one > 0) + one / (1 + np.sum(left)) for one in left], axis=0)
        apart = total.copy()
        for cut in found:
            apart[max(0, cut - near) : cut + near + 1] = 0
        found.append(int(np.argmax(apart if apart.any() else total)))
    return tuple(sorted(found))


def _stages(problem: Problem, sequence: Ints) -> Ints:
    """The stage of each position: how many operations have run before it for the first time."""
    first = np.zeros(len(sequence), np.int64)
    first[np.unique(sequence, return_index=True)[1]] = 1
    return np.minimum(np.cumsum(first) - first, len(problem))


def second_cuts(problem: Problem, cut: int, count: int = 8) -> Iterator[tuple[int, int]]:
    """Pairs with one more cut, spread over what is behind the first and a little before it."""
    n = len(problem)
    for share in range(1, count + 1):
        other = cut + (n - 1 - cut) * share // (count + 1)
        if other != cut:
            yield cut, other


def _named(cuts: Sequence[int]) -> str:
    shown = ", ".join(map(str, cuts)) if len(cuts) <= 2 else f"{cuts[0]} … {cuts[-1]}"
    return f"cut at {shown}" if len(cuts) == 1 else f"{len(cuts)} cuts at {shown}"


def _copies(problem: Problem, stages: StageProgram, answer: Answer) -> frozenset[Pair]:
    """What the solution says, each operation at its first need in its segment."""
    assert answer.values is not None
    found, ends = set[Pair](), (*stages.cuts[1:], len(problem))
    kept = [*(stages.alive(answer.values, k) for k in range(len(stages.cuts))), np.flatnonzero(problem.output).tolist()]
    for k, cut in enumerate(stages.cuts):
        again = stages.recomputed(answer.values, k)
        found |= at_first_need(problem, cut, kept[k], again, ends[k], kept[k + 1])
    return frozenset(found)
