"""Look-ahead eviction, as in dynamic tensor rematerialisation (Kirisame et al., "Dynamic tensor rematerialization",
2021), but with known future uses: run the step; if memory is short, evict the storage with the least cost per byte and
per step until its next use; recompute missing operands recursively."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from .problem import Pair, Problem

MOST = 40
"""Maximum number of copies, per operation of the step."""


class _Short(Exception):
    """Memory is not sufficient with any eviction."""


@dataclass
class _Eviction:
    """`memory`: live storages; `stage`: the next operation to run for the first time; `pinned`: number of pending reads
    of storages that must not be evicted."""

    problem: Problem
    budget: int
    maker: list[int]
    sizes: list[int]
    reads: list[list[int]]
    users: list[list[int]]
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
        """Run an operation after its missing operands. `copy`: it has run before. Raises `_Short`."""
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
                or len(self.pairs) > MOST * len(self.reads)
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
    """The copies of the run, or None if memory was not sufficient. The order of copies within a stage may differ from
    the run, so the peak may slightly exceed the budget, and the copies need repair."""
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
