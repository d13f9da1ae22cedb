"""Search all sets of live storages of a small problem: copies within a budget, or the proof that there are none.

The state of a schedule between two executions is the set of live storages. Before a copy, and before the first
execution of an operation, any storage may be dropped. So all states that a budget allows are found stage by stage. If
a state is a subset of another one, it is left out, since a storage may be dropped at any later time. If no state is
left at an operation, no schedule keeps the budget. Otherwise one that reaches the end is followed back to the start.

States are bits of 64-bit integers: only storages that copies make or read are among them, while all others are live
from their operation to their last use in every schedule. Storages below `NEGLIGIBLE` count as free, and always live.

Pebble games on graphs with recomputation are of this form (Sethi 1975); the number of states is exponential, so that
of more than `MAX_STATES` some are left out; then copies may be found, but nothing is proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .problem import Ints, Pair, Problem
from .result import Stop, never
from .sequence import evaluate, sequence_of

States: TypeAlias = NDArray[np.uint64]
MAX_STORAGES = 64
"""Maximum number of storages in a state."""
MAX_STATES = 1000
"""Maximum number of states between two executions. If there are more, the states with the most storages are kept."""
NEGLIGIBLE = 1e-3
"""Share of the budget below which a storage counts as free."""
CORRECTIONS = 3
"""Maximum number of searches for a budget: each next one is for fewer bytes, by the excess of the plan before it."""
CHUNK = 16
"""Bits of a state whose bytes are looked up together."""


class TooManyStates(Exception):
    """The problem has too many storages or states."""


def copies_within(problem: Problem, budget: int, stop: Stop = never) -> frozenset[Pair] | None:
    """Return copies with a peak within the budget, in bytes; None if it is proved that there are none.

    Raises `TooManyStates` if neither is found.
    """
    limit = budget
    for _ in range(CORRECTIONS):
        pairs = _Search(problem, limit, stop).copies()
        if pairs is None:
            break
        excess = evaluate(problem, sequence_of(problem, pairs)).peak_bytes - budget
        if excess <= 0:
            return pairs
        limit -= excess
    if _Search(problem, budget, stop, any_order=True).copies() is None:
        return None
    raise TooManyStates("a schedule within the budget needs copies in another order, or has too many small storages")


@dataclass(frozen=True)
class _Layer:
    """The states behind an execution.

    Attributes:
        stage: The stage.
        op: The operation; the operation of the stage itself runs for the first time.
        states: The states from which the schedule can go on.
    """

    stage: int
    op: int
    states: States


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for one budget.

    Attributes:
        any_order: Whether the copies in a stage may run in any order, and more than once; their order is lost then.
        layers: The states behind each execution so far.
        left_out: The numbers of states that were left out.
    """

    problem: Problem
    budget: int
    stop: Stop
    any_order: bool = False
    layers: list[_Layer] = field(default_factory=list[_Layer])
    left_out: list[int] = field(default_factory=list[int])

    def copies(self) -> frozenset[Pair] | None:
        """Return copies of a schedule; None if there is none. Raises `TooManyStates`."""
        states, end = np.zeros(1, np.uint64), len(self.problem)
        for stage in range(end):
            states = self._behind(self._with_copies(states, stage), stage, stage)
            if not len(states):
                break
        if len(states) and _contains(self._with_copies(states, end), self._outputs):
            return frozenset(self._followed_back())
        if self.left_out:
            raise TooManyStates(
                f"the search left out {sum(self.left_out)} states of live storages, so nothing is proved"
            )
        return None

    def _too_many_states(self) -> TooManyStates:
        return TooManyStates(f"the search left out {sum(self.left_out)} states of live storages, so nothing is proved")

    def _with_copies(self, states: States, stage: int) -> States:
        """Return the states after the copies of a stage, and the states without these copies."""
        while True:
            before = states
            for op in self._candidates(stage):
                states = self._behind(states, stage, op)
            if not self.any_order or np.array_equal(before, states):
                return states
            if self.left_out:
                raise TooManyStates(
                    f"the search left out {sum(self.left_out)} states of live storages, so nothing is proved"
                )

    def _candidates(self, stage: int) -> Iterator[int]:
        """Yield the operations that may be copied in a stage and whose results are of use then."""
        if stage >= self._first:
            useful = self._useful[stage]
            yield from (op for op in range(stage) if self.problem.again[op] and self._made[op] & useful)

    def _behind(self, states: States, stage: int, op: int) -> States:
        """Return the states after an execution and, if it is a copy, also the states without it."""
        if self.stop():
            raise TooManyStates("the search was stopped")
        states = self._run(states, stage, op)
        self.layers.append(_Layer(stage, op, states))
        return states

    def _run(self, states: States, stage: int, op: int) -> States:
        read, made = self._read[op], self._made[op]
        runs = states[(states & np.uint64(read)) == np.uint64(read)]
        if op != stage:
            wanted = np.uint64(made & self._useful[stage])
            runs = runs[(runs & wanted) != wanted]
            if not len(runs):
                return states
        ran = self._dropped(np.unique(runs | np.uint64(made)), read | made, self._room(stage, op))
        ran &= np.uint64(self._useful[stage if op != stage else stage + 1])
        return self._most(_largest(np.unique(ran) if op == stage else np.union1d(states, ran), self._bits))

    def _dropped(self, states: States, kept: int, room: int) -> States:
        """Return the largest subsets of the states that have room, each with the storages of `kept`."""
        droppable = self._bits[(self._bits & np.uint64(kept)) == 0]
        fitting = list[States]()
        while len(states):
            fits = self._bytes(states) <= room
            fitting.append(states[fits])
            states = states[~fits]
            smaller = states[:, None] & ~droppable
            states = self._most(np.unique(smaller[smaller != states[:, None]]))
        result = _largest(np.unique(np.concatenate(fitting)), self._bits) if fitting else states
        return self._most(result)

    def _most(self, states: States) -> States:
        """Return the states; if there are too many, only the states with the most storages."""
        if len(states) <= MAX_STATES:
            return states
        self.left_out.append(len(states) - MAX_STATES)
        counts = np.unpackbits(states.view(np.uint8).reshape(len(states), -1), axis=1).sum(axis=1)
        order = np.argsort(counts, kind="stable")
        return np.sort(states[order[-MAX_STATES:]])

    def _followed_back(self) -> Iterator[Pair]:
        """Yield the necessary copies of a schedule that ends with the outputs."""
        wanted = self._outputs
        for layer, before in zip(reversed(self.layers), [*reversed(self.layers[:-1]), None], strict=True):
            states = np.zeros(1, np.uint64) if before is None else before.states
            if layer.op != layer.stage and _contains(states, wanted):
                continue
            read, made = self._read[layer.op], self._made[layer.op]
            if layer.op != layer.stage:
                yield layer.stage, layer.op
            wanted = wanted & ~made | read
            assert _contains(states, wanted), "every state has one before it"

    @cached_property
    def _first(self) -> int:
        """The first stage in which copies may run."""
        return 0 if self.problem.everywhere else self.problem.earliest

    @cached_property
    def _number(self) -> dict[int, int]:
        """The bit of each storage that is part of the state."""
        problem = self.problem
        copied = np.flatnonzero(problem.again).tolist()
        read = {v for op in copied for v in problem.reads_of(op)}
        own = [v for op in copied for v in problem.makes_of(op)]
        numbered = sorted(v for v in {*own, *read} if not self._is_free[v])
        if len(numbered) > MAX_STORAGES:
            raise TooManyStates(f"{len(numbered)} storages")
        return {v: number for number, v in enumerate(numbered)}

    @cached_property
    def _is_free(self) -> NDArray[np.bool_]:
        return self.problem.sizes <= NEGLIGIBLE * self.budget

    @cached_property
    def _bits(self) -> States:
        return np.uint64(1) << np.arange(len(self._number), dtype=np.uint64)

    def _mask(self, values: Iterable[int]) -> int:
        return sum(1 << self._number[v] for v in set(values) if v in self._number)

    @cached_property
    def _read(self) -> list[int]:
        return [self._mask(self.problem.reads_of(op)) for op in range(len(self.problem))]

    @cached_property
    def _made(self) -> list[int]:
        return [self._mask(self.problem.makes_of(op)) for op in range(len(self.problem))]

    @cached_property
    def _outputs(self) -> int:
        return self._mask(np.flatnonzero(self.problem.output).tolist())

    @cached_property
    def _useful(self) -> list[int]:
        """For each stage, the end included, the storages that it or a later stage can read, in copies too."""
        end, useful = len(self.problem), self._outputs
        stages = list[int]()
        for stage in reversed(range(end + 1)):
            useful |= self._read[stage] if stage < end else 0
            if stage >= self._first:
                for op in reversed(range(stage)):  # operands are made before
                    if self.problem.again[op] and self._made[op] & useful:
                        useful |= self._read[op]
            stages.append(useful)
        return stages[::-1]

    @cached_property
    def _beside(self) -> Ints:
        """For each stage, the end included, the bytes of storages outside the state that are live then; results of
        its own operation are among them."""
        problem, end = self.problem, len(self.problem)
        change = np.zeros(end + 2, np.int64)
        for v in range(len(problem.sizes)):
            if v not in self._number and not self._is_free[v]:
                maker = int(problem.maker[v])
                last = end if problem.output[v] else max([maker, *problem.users_of(v)])
                change[maker] += problem.sizes[v]
                change[last + 1] -= problem.sizes[v]
        return np.cumsum(change)[: end + 1]

    def _room(self, stage: int, op: int) -> int:
        """Return the bytes for storages of the state while an operation runs in a stage."""
        not_yet = range(0) if op == stage or stage == len(self.problem) else self.problem.makes_of(stage)
        made_later = sum(int(self.problem.sizes[v]) for v in not_yet if v not in self._number and not self._is_free[v])
        return self.budget - int(self._beside[stage]) + made_later - int(self.problem.inner[op])

    @cached_property
    def _tables(self) -> list[Ints]:
        """The bytes of each set of `CHUNK` storages, one table for each chunk of a state."""
        sizes = [int(self.problem.sizes[v]) for v in self._number]
        tables = list[Ints]()
        for start in range(0, max(1, len(sizes)), CHUNK):
            table = np.zeros(1 << CHUNK, np.int64)
            for bit, size in enumerate(sizes[start : start + CHUNK]):
                table[1 << bit : 2 << bit] = table[: 1 << bit] + size
            tables.append(table)
        return tables

    def _bytes(self, states: States) -> Ints:
        low = np.uint64((1 << CHUNK) - 1)
        parts = (
            table[((states >> np.uint64(CHUNK * at)) & low).astype(np.int64)] for at, table in enumerate(self._tables)
        )
        return np.add.reduce(list(parts))


def _contains(states: States, wanted: int) -> bool:
    return bool(((states & np.uint64(wanted)) == np.uint64(wanted)).any())


def _largest(states: States, bits: States) -> States:
    """Return the sorted states, without each state that another state extends by one storage."""
    larger = states[:, None] | bits
    return states[~((larger != states[:, None]) & np.isin(larger, states)).any(axis=1)]
