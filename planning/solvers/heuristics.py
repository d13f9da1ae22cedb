"""Simple solvers: equal segments, greedy at the peak, and look-ahead eviction. They provide starting points for
the search, and are used for comparison.

*Segments* of equal size (Chen et al., "Training deep nets with sublinear memory cost", 2016): keep the values that
cross segment boundaries, and recompute all remaining values at their first use in the backward pass. About sqrt(n)
segments are optimal on chains; every number up to about 3 sqrt(n) is tried.

*Greedy at the peak*, as in XLA's rematerialization pass: until the peak is within the budget, recompute the storage
that frees the most bytes at the peak per unit of cost, and keep its inputs live instead.

*Look-ahead eviction*, as in dynamic tensor rematerialisation (Kirisame et al., "Dynamic tensor rematerialization",
2021), but with knowledge of the future uses. The step is run, and whenever memory is short, a storage is evicted: the
storage with the least recomputation cost, divided by its bytes and by the number of operations until its next use.
Missing operands are recomputed recursively.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from math import isqrt

from .first_need import copies_at_first_need
from .problem import Pair, Problem
from .sequence import Evaluation, evaluate, sequence_of


def solve_by_equal_segments(problem: Problem, budget: int) -> frozenset[Pair] | None:
    """Return the copies of the cheapest segmentation within a budget in bytes; None if every segmentation exceeds the
    budget."""
    cheapest: _Segmentation | None = None
    for segmentation in _segmentations(problem):
        # The peak is computed only for segmentations that are cheaper than the best one so far.
        if cheapest is None or segmentation.cost < cheapest.cost:
            cheapest = segmentation if segmentation.peak_bytes <= budget else cheapest
    return None if cheapest is None else cheapest.pairs


@dataclass(frozen=True)
class _Segmentation:
    """The copies of a segmentation, and their cost."""

    problem: Problem
    pairs: frozenset[Pair]
    cost: int

    @cached_property
    def peak_bytes(self) -> int:
        return evaluate(self.problem, sequence_of(self.problem, self.pairs)).peak_bytes


# One cache entry is enough: all budgets of a problem are searched before the next problem.
@lru_cache(maxsize=1)
def _segmentations(problem: Problem) -> tuple[_Segmentation, ...]:
    """Return the divisions of the forward pass into equal segments that copy only operations that may be rerun."""
    plans = map(partial(plan_by_segments, problem), range(2, 3 * isqrt(max(4, problem.earliest_stage)) + 2))
    valid = [pairs for pairs in plans if all(problem.may_run_again[op] for _, op in pairs)]
    return tuple([_Segmentation(problem, pairs, problem.cost_of(pairs)) for pairs in valid])


def plan_by_segments(problem: Problem, count: int) -> frozenset[Pair]:
    """Divide the forward pass into `count` segments, and return copies of the operations in all segments except the
    last. Each copy runs before its first use in the backward pass. The forward pass consists of the operations before
    `earliest_stage`."""
    end = problem.earliest_stage
    segment = [op * count // max(1, end) for op in range(end)]
    recomputed = {op for op in range(end) if segment[op] < count - 1 and problem.may_run_again[op]}

    def is_saved(v: int, maker: int) -> bool:
        return maker not in recomputed or any(op < end and segment[op] != segment[maker] for op in problem.uses_of(v))

    makers: list[int] = problem.makers.tolist()
    saved = {v for v, maker in enumerate(makers) if maker < end and is_saved(v, maker)}
    return copies_at_first_need(problem, end - 1, saved, recomputed)


def greedy_at_peak(problem: Problem, budget: int) -> frozenset[Pair] | None:
    """Return copies within a budget in bytes, chosen greedily at the peak; None if no candidate lowers the peak.

    Each iteration evaluates the whole order, so this heuristic is only suitable for small problems.
    """
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
    """Return whether the overflow falls while the peak stays equal. This happens if one of several equal peaks is
    lowered."""
    return after.peak_bytes == before.peak_bytes and _overflow(after, budget) < _overflow(before, budget)


def _overflow(evaluation: Evaluation, budget: int) -> int:
    """Return the bytes above the budget, summed over all positions."""
    excess = evaluation.bytes_at - budget
    return int(excess[excess > 0].sum())


def _candidates(problem: Problem, pairs: set[Pair], evaluation: Evaluation) -> list[Pair]:
    """Return candidate copies, in order of decreasing bytes per unit of cost. Each candidate recomputes a storage that
    is live but not used at the peak, right before its next use."""
    peak_stage = _stage_of(problem, pairs, evaluation.position)
    copy_stages = dict[int, list[int]]()
    for t, op in pairs:
        copy_stages.setdefault(op, []).append(t)
    candidates = list[tuple[float, Pair]]()
    for v in range(len(problem.storage_bytes)):
        op, size = int(problem.makers[v]), int(problem.storage_bytes[v])
        if op >= peak_stage or not problem.may_run_again[op] or size == 0:
            continue
        uses = sorted({t for user in problem.uses_of(v) for t in (user, *copy_stages.get(user, ()))})
        next_use = next((t for t in uses if t >= peak_stage), len(problem) if problem.is_output[v] else None)
        if next_use is None or next_use <= peak_stage or next_use < problem.earliest_stage:
            continue
        # After a copy between the peak and this use, the storage is not live at the peak for this use.
        if not any(peak_stage <= t <= next_use for t in copy_stages.get(op, ())):
            candidates.append((-size / max(1, int(problem.costs[op])), (next_use, op)))
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


MAX_COPIES_FACTOR = 40
"""Maximum number of copies in a run with eviction, as a multiple of the step's number of operations. A run that needs
more copies is thrashing, and fails."""


class _OutOfMemory(Exception):
    """The error for a run that exceeds the budget even after all possible evictions, or that makes too many copies."""


@dataclass
class _EvictionRun:
    """The state of a run with eviction.

    Attributes:
        problem, budget: The problem, and its budget in bytes.
        in_memory: The live storages.
        live_bytes: Their bytes.
        stage: The next operation that runs for the first time.
        pending_reads: For each storage, the number of pending reads. A storage with pending reads must not be evicted.
        pairs: The copies so far.
    """

    problem: Problem
    budget: int
    in_memory: set[int] = field(default_factory=set[int])
    live_bytes: int = 0
    stage: int = 0
    pending_reads: Counter[int] = field(default_factory=Counter[int])
    pairs: set[Pair] = field(default_factory=set[Pair])

    @cached_property
    def _makers(self) -> list[int]:
        return self.problem.makers.tolist()

    @cached_property
    def _sizes(self) -> list[int]:
        return self.problem.storage_bytes.tolist()

    def run_step(self) -> None:
        """Run all operations in order, drop each storage after its last use, and recompute missing outputs at the end.
        Raises `_OutOfMemory`."""
        problem, end = self.problem, len(self.problem)
        for op in range(end):
            self.stage = op
            self._execute(op, is_copy=False)
            self.stage = op + 1
            for v in [*problem.operands_of(op), *problem.results_of(op)]:
                if v in self.in_memory and self._next_use(v) is None:
                    self._drop(v)
        missing = [v for v in range(len(self._sizes)) if problem.is_output[v] and v not in self.in_memory]
        self.pairs.update((end, self._makers[v]) for v in missing)

    def _execute(self, op: int, is_copy: bool) -> None:
        """Run an operation, after the makers of its missing operands. Raises `_OutOfMemory`."""
        operands = self.problem.operands_of(op)
        self.pending_reads.update(operands)
        for v in operands:
            if v not in self.in_memory:
                self._execute(self._makers[v], is_copy=True)
        new_storages = [v for v in self.problem.results_of(op) if v not in self.in_memory]
        made_bytes = sum(self._sizes[v] for v in new_storages)
        self._evict_until_free(made_bytes + int(self.problem.inner_bytes[op]))
        if is_copy:
            self._add_copy(op)
        self.in_memory.update(new_storages)
        self.live_bytes += made_bytes
        self.pending_reads.subtract(operands)

    def _add_copy(self, op: int) -> None:
        is_allowed = self.problem.may_run_again[op] and self.stage >= self.problem.earliest_stage
        if not is_allowed or len(self.pairs) > MAX_COPIES_FACTOR * len(self.problem):
            raise _OutOfMemory
        self.pairs.add((self.stage, op))

    def _evict_until_free(self, needed_bytes: int) -> None:
        """Evict storages, in order of increasing loss, until `needed_bytes` of the budget are free."""
        while self.live_bytes + needed_bytes > self.budget:
            evictable = [v for v in self.in_memory if not self.pending_reads[v] and self._sizes[v] > 0]
            if not evictable:
                raise _OutOfMemory
            self._drop(min(evictable, key=lambda v: (self._loss(v), v)))

    def _loss(self, v: int) -> float:
        """Return the cost of recomputing a storage, divided by its bytes and by the number of operations until its next
        use. Return -1 without a next use, and infinity if the storage must not be recomputed."""
        next_use, op = self._next_use(v), self._makers[v]
        if next_use is None:
            return -1.0
        if not self.problem.may_run_again[op]:
            return float("inf")
        return int(self.problem.costs[op]) / (self._sizes[v] * max(1, next_use - self.stage))

    def _next_use(self, v: int) -> int | None:
        """Return the stage of the next first execution that reads a storage, or, for outputs, the end of the step; None
        if there is no further use."""
        users = self.problem.uses_of(v)
        index = bisect_left(users, self.stage)
        if index < len(users):
            return users[index]
        return len(self.problem) if self.problem.is_output[v] else None

    def _drop(self, v: int) -> None:
        self.in_memory.remove(v)
        self.live_bytes -= self._sizes[v]


def eviction(problem: Problem, budget: int) -> frozenset[Pair] | None:
    """Return the copies of a run with eviction within a budget in bytes; None if the memory was not sufficient.

    Afterwards the copies within a stage are sorted into program order, so the peak may slightly exceed the budget, and
    the copies need repair.
    """
    run = _EvictionRun(problem, budget)
    try:
        run.run_step()
    except (_OutOfMemory, RecursionError):
        return None
    return frozenset(run.pairs)
