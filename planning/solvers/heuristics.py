"""Simple solvers, as starting points and for comparison: equal segments, greedy at the peak, and eviction.

*Segments* of equal size (Chen et al., "Training deep nets with sublinear memory cost", 2016): keep the values that
cross segment boundaries, and recompute the others at their first use in the backward pass. About sqrt(n) segments are
optimal on chains; every number up to about 3 sqrt(n) is tried.

*Greedy at the peak*, as in XLA's rematerialization pass: recompute the storage that frees the most bytes at the peak
for its cost, and keep its inputs live instead, until the peak is within the budget.

*Look-ahead eviction*, as in dynamic tensor rematerialisation (Kirisame et al., "Dynamic tensor rematerialization",
2021), but with known future uses: run the step, and if memory is short, evict the storage with the least cost per byte
and per operation until its next use. Missing operands are recomputed recursively.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from math import isqrt

from .first_need import copies_at_first_need
from .problem import Pair, Problem
from .sequence import Evaluation, evaluate, sequence_of


def chen(problem: Problem, budget: int) -> frozenset[Pair] | None:
    """Return the copies of the cheapest segmentation within the budget; None if there is none."""
    best, cheapest = None, -1
    for segmentation in _segmentations(problem):
        if best is not None and segmentation.cost >= cheapest:
            continue
        if segmentation.peak_bytes <= budget:
            best, cheapest = segmentation.pairs, segmentation.cost
    return best


@dataclass(frozen=True)
class _Segmentation:
    """The copies of a segmentation, and their cost."""

    problem: Problem
    pairs: frozenset[Pair]
    cost: int

    @cached_property
    def peak_bytes(self) -> int:
        return evaluate(self.problem, sequence_of(self.problem, self.pairs)).peak_bytes


# Searches for several budgets on one problem follow each other.
@lru_cache(maxsize=1)
def _segmentations(problem: Problem) -> tuple[_Segmentation, ...]:
    """Return the segmentations whose copies may all run again."""
    found = map(partial(plan_by_segments, problem), range(2, 3 * isqrt(max(4, problem.earliest)) + 2))
    valid = [pairs for pairs in found if all(problem.again[op] for _, op in pairs)]
    return tuple([_Segmentation(problem, pairs, problem.cost_of(pairs)) for pairs in valid])


def plan_by_segments(problem: Problem, count: int) -> frozenset[Pair]:
    """Return the copies of all but the last of `count` segments of the forward pass, at their first uses in the
    backward pass."""
    first = problem.earliest
    segment = [op * count // max(1, first) for op in range(first)]
    kept, again = set[int](), {op for op in range(first) if segment[op] < count - 1 and problem.again[op]}
    for v in range(len(problem.sizes)):
        maker = int(problem.maker[v])
        if maker < first and (
            maker not in again or any(op < first and segment[op] != segment[maker] for op in problem.users_of(v))
        ):
            kept.add(v)
    return copies_at_first_need(problem, first - 1, kept, again)


def at_peak(problem: Problem, budget: int) -> frozenset[Pair] | None:
    """Return copies within the budget, by the greedy at the peak; None if no candidate lowers the peak. Each step
    evaluates the whole order, so that this suits small problems only."""
    pairs = set[Pair]()
    current = evaluate(problem, sequence_of(problem, pairs))
    while current.peak_bytes > budget:
        for candidate in _candidates(problem, pairs, current):
            pairs.add(candidate)
            after = evaluate(problem, sequence_of(problem, pairs))
            if after.peak_bytes < current.peak_bytes or _is_better(after, current, budget):
                current = after
                break
            pairs.remove(candidate)
        else:
            return None
    return frozenset(pairs)


def _is_better(after: Evaluation, before: Evaluation, budget: int) -> bool:
    """Return whether the peak is equal and the overflow lower, as if one of several equal peaks was lowered."""
    return after.peak_bytes == before.peak_bytes and _overflow(after, budget) < _overflow(before, budget)


def _overflow(evaluation: Evaluation, budget: int) -> int:
    over = evaluation.bytes_at - budget
    return int(over[over > 0].sum())


def _candidates(problem: Problem, pairs: set[Pair], evaluation: Evaluation) -> list[Pair]:
    """Return the copies before the next use of storages that are live at the peak but not used there, the most bytes
    per cost first."""
    n, stage = len(problem), _stage_of(problem, pairs, evaluation.position)
    runs = dict[int, list[int]]()
    for t, op in pairs:
        runs.setdefault(op, []).append(t)
    candidates = list[tuple[float, Pair]]()
    for v in range(len(problem.sizes)):
        op, size = int(problem.maker[v]), int(problem.sizes[v])
        if op >= stage or not problem.again[op] or size == 0:
            continue
        uses = sorted({t for user in problem.users_of(v) for t in (user, *runs.get(user, ()))})
        later = next((t for t in uses if t >= stage), n if problem.output[v] else None)
        if later is None or later <= stage or later < problem.earliest:
            continue
        # A copy between the peak and this use exists already: the storage is not live at the peak for this use.
        if not any(stage <= t <= later for t in runs.get(op, ())):
            candidates.append((-size / max(1, int(problem.costs[op])), (later, op)))
    return [pair for _, pair in sorted(candidates)]


def _stage_of(problem: Problem, pairs: set[Pair], position: int) -> int:
    """Return the stage of a position in the flat order."""
    remaining = position
    counts = [0] * (len(problem) + 1)
    for t, _ in pairs:
        counts[t] += 1
    for t, count in enumerate(counts):
        if remaining <= count:
            return t
        remaining -= count + 1
    return len(problem)


MAX_COPIES = 40
"""Maximum number of copies, per operation of the step."""


class _Short(Exception):
    """The memory does not suffice, even after all possible evictions."""


@dataclass
class _Eviction:
    """The state of a run with eviction.

    Attributes:
        maker, sizes, reads, users: The fields of the problem, as lists.
        memory: The live storages.
        alive: Their bytes.
        stage: The next operation that runs for the first time.
        pinned: For each storage the number of pending reads, during which it must not be evicted.
        pairs: The copies so far.
    """

    problem: Problem
    budget: int
    maker: list[int]
    sizes: list[int]
    reads: list[tuple[int, ...]]
    users: list[tuple[int, ...]]
    memory: set[int] = field(default_factory=set[int])
    alive: int = 0
    stage: int = 0
    pinned: dict[int, int] = field(default_factory=dict[int, int])
    pairs: set[Pair] = field(default_factory=set[Pair])

    def next_use(self, v: int) -> int | None:
        index = bisect_left(self.users[v], self.stage)
        if index < len(self.users[v]):
            return self.users[v][index]
        return len(self.reads) if self.problem.output[v] else None

    def execute(self, op: int, copy: bool) -> None:
        """Run an operation, after the makers of its missing operands. `copy`: whether it has run before. Raises
        `_Short`."""
        for v in self.reads[op]:
            self.pinned[v] = self.pinned.get(v, 0) + 1
        for v in self.reads[op]:
            if v not in self.memory:
                self.execute(self.maker[v], True)
        made = [v for v in self.problem.makes_of(op) if v not in self.memory]
        self._make_room(sum(self.sizes[v] for v in made) + int(self.problem.inner[op]))
        if copy:
            if (
                not self.problem.again[op]
                or len(self.pairs) > MAX_COPIES * len(self.reads)
                or self.stage < self.problem.earliest
            ):
                raise _Short
            self.pairs.add((self.stage, op))
        self.memory.update(made)
        self.alive += sum(self.sizes[v] for v in made)
        for v in self.reads[op]:
            self.pinned[v] -= 1

    def _make_room(self, needed: int) -> None:
        while self.alive + needed > self.budget:
            free = [v for v in self.memory if not self.pinned.get(v) and self.sizes[v] > 0]
            if not free:
                raise _Short
            self.drop(min(free, key=lambda v: (self._loss(v), v)))

    def _loss(self, v: int) -> float:
        use, op = self.next_use(v), self.maker[v]
        if use is None:
            return -1.0
        if not self.problem.again[op]:
            return float("inf")
        return int(self.problem.costs[op]) / (self.sizes[v] * max(1, use - self.stage))

    def drop(self, v: int) -> None:
        self.memory.remove(v)
        self.alive -= self.sizes[v]


def eviction(problem: Problem, budget: int) -> frozenset[Pair] | None:
    """Return the copies of a run with eviction; None if the memory did not suffice. Copies within a stage are put in
    program order afterwards, so that the peak may slightly exceed the budget, and the copies need repair."""
    n = len(problem)
    run = _Eviction(
        problem,
        budget,
        problem.maker.tolist(),
        problem.sizes.tolist(),
        [problem.reads_of(op) for op in range(n)],
        [problem.users_of(v) for v in range(len(problem.sizes))],
    )
    try:
        for op in range(n):
            run.stage = op
            run.execute(op, False)
            run.stage = op + 1
            for v in [*run.reads[op], *problem.makes_of(op)]:
                if v in run.memory and run.next_use(v) is None:
                    run.drop(v)
    except (_Short, RecursionError):
        return None
    missing = [v for v in range(len(problem.sizes)) if problem.output[v] and v not in run.memory]
    return frozenset(run.pairs | {(n, int(problem.maker[v])) for v in missing})
