"""Search all sets of live storages of a small problem, for copies within a budget or for a proof that no such copies
exist.

The state of a schedule between two executions is the set of live storages. Before any execution, any storage may be
dropped. The search enumerates all states that the budget allows, stage by stage. It omits a state that is a subset of
another state, because a storage may also be dropped later. If no state remains at an operation, no schedule is within
the budget. Otherwise a state at the end of the step is traced back to the start.

A state is a bit mask in a 64-bit integer. It includes only the storages that copies make or read; all other storages
are live from their operation to their last use in every schedule. Storages below `NEGLIGIBLE_SHARE` count as free, and
as always live.

Pebble games on graphs with recomputation are of this form (R. Sethi, "Complete register allocation problems", 1975).
The number of states is exponential. If there are more than `MAX_STATES` states, some are omitted. The search may still
find copies, but if it finds no copies, nothing is proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...support.counted import counted
from .problem import Ints, Pair, Problem
from .result import Stop, never_stop
from .sequence import evaluate, sequence_of

States: TypeAlias = NDArray[np.uint64]
"""A sorted array of states, each of which is a bit mask."""
MAX_STORAGES = 64
"""Maximum number of storages in a state, one for each bit of an integer. A problem with more of them is not
searched."""
MAX_STATES = 1000
"""Maximum number of states between two executions. It bounds time and memory. If there are more, the states with the
most storages are kept, and nothing is proved."""
NEGLIGIBLE_SHARE = 1e-3
"""Share of the budget below which a storage counts as free, so that it needs no bit in the states. The excess is
corrected (`MAX_CORRECTIONS`)."""
MAX_CORRECTIONS = 3
"""Maximum number of searches for one budget. Each search after the first lowers the limit by the excess of the
preceding plan."""
CHUNK_BITS = 16
"""Number of storages of a state whose bytes are looked up together, in a table with 2 ** 16 entries."""


class TooManyStates(Exception):
    """The error for a search that finds neither copies nor a proof that there are none. The usual cause is that the
    problem has too many storages or states."""


def copies_within(problem: Problem, budget: int, stop: Stop = never_stop) -> frozenset[Pair] | None:
    """Return copies whose peak is within the budget.

    Args:
        problem: The problem.
        budget: The budget in bytes.
        stop: A predicate that ends the search. The search then raises `TooManyStates`.

    Returns:
        The copies; None if it is proved that there are none.

    Raises:
        TooManyStates: If the search finds neither copies nor a proof.
    """
    limit = budget
    for _ in range(MAX_CORRECTIONS):
        pairs = _StateSearch(problem, limit, stop).copies()
        if pairs is None:
            break
        # The search ignores negligible storages.
        excess = evaluate(problem, sequence_of(problem, pairs)).peak_bytes - budget
        if excess <= 0:
            return pairs
        limit -= excess
    if _StateSearch(problem, budget, stop, any_order=True).copies() is None:
        return None
    raise TooManyStates(
        "nothing is proved: the copies of a schedule within the budget may run in a different order, and the search "
        "ignores the bytes of small storages"
    )


@dataclass(frozen=True)
class _Layer:
    """The states after an execution.

    Attributes:
        stage: The stage.
        op: The operation: a copy, or the operation of the stage itself, which runs for the first time.
        states: The states from which the schedule can continue.
    """

    stage: int
    op: int
    states: States


@dataclass(frozen=True, eq=False)
class _StateSearch:
    """The search for one budget.

    Attributes:
        any_order: Whether the copies in a stage may run in any order, and more than once. In this case their order is
            not recorded.
        layers: The states after each execution so far.
        omitted: For each execution that led to too many states, the number of omitted states.
    """

    problem: Problem
    budget: int
    stop: Stop
    any_order: bool = False
    layers: list[_Layer] = field(default_factory=list[_Layer])
    omitted: list[int] = field(default_factory=list[int])

    def copies(self) -> frozenset[Pair] | None:
        """Return the copies of a schedule within the budget; None if there is no such schedule. Raises
        `TooManyStates`."""
        states, end = np.zeros(1, np.uint64), len(self.problem)
        for stage in range(end):
            states = self._after_execution(self._after_copies(states, stage), stage, stage)
            if not len(states):
                break
        if len(states) and _has_superset(self._after_copies(states, end), self._outputs):
            return frozenset(self._trace_back())
        self._demand_all_states()
        return None

    def _demand_all_states(self) -> None:
        if self.omitted:
            message = (
                f"the search left out {counted(sum(self.omitted), 'state')} of live storages, so nothing is proved"
            )
            raise TooManyStates(message)

    def _after_copies(self, states: States, stage: int) -> States:
        """Return the states after any of the copies of a stage, including the states without copies."""
        while True:
            before = states
            for op in self._candidates(stage):
                states = self._after_execution(states, stage, op)
            if not self.any_order or np.array_equal(before, states):
                return states
            self._demand_all_states()

    def _candidates(self, stage: int) -> Iterator[int]:
        """Yield the operations that may be copied in a stage, and whose results this stage or a later one can read."""
        if stage >= self._first_stage:
            useful = self._useful[stage]
            yield from (op for op in range(stage) if self.problem.may_run_again[op] and self._results[op] & useful)

    def _after_execution(self, states: States, stage: int, op: int) -> States:
        """Return the states after an execution and, if it is a copy, also the states without it. Records the layer."""
        if self.stop():
            raise TooManyStates("the search was stopped")
        states = self._execute(states, stage, op)
        self.layers.append(_Layer(stage, op, states))
        return states

    def _execute(self, states: States, stage: int, op: int) -> States:
        """Return the states after an execution; they include its results and are within the budget."""
        operands, results = self._operands[op], self._results[op]
        runnable = states[(states & np.uint64(operands)) == np.uint64(operands)]
        if op != stage:
            useful_results = np.uint64(results & self._useful[stage])
            runnable = runnable[(runnable & useful_results) != useful_results]
            if not len(runnable):
                return states
        after = self._fitting_subsets(
            np.unique(runnable | np.uint64(results)), operands | results, self._room(stage, op)
        )
        after &= np.uint64(self._useful[stage if op != stage else stage + 1])
        return self._keep_largest(_maximal(np.unique(after) if op == stage else np.union1d(states, after), self._bits))

    def _fitting_subsets(self, states: States, required_bits: int, room: int) -> States:
        """Return the maximal subsets of the states that take at most `room` bytes and include the storages of
        `required_bits`."""
        droppable = self._bits[(self._bits & np.uint64(required_bits)) == 0]
        fitting = list[States]()
        while len(states):
            fits = self._bytes(states) <= room
            fitting.append(states[fits])
            states = states[~fits]
            smaller = states[:, None] & ~droppable
            states = self._keep_largest(np.unique(smaller[smaller != states[:, None]]))
        subsets = _maximal(np.unique(np.concatenate(fitting)), self._bits) if fitting else states
        return self._keep_largest(subsets)

    def _keep_largest(self, states: States) -> States:
        """Return the states; if there are too many, only the states with the most storages."""
        if len(states) <= MAX_STATES:
            return states
        self.omitted.append(len(states) - MAX_STATES)
        counts = np.unpackbits(states.view(np.uint8).reshape(len(states), -1), axis=1).sum(axis=1)
        order = np.argsort(counts, kind="stable")
        return np.sort(states[order[-MAX_STATES:]])

    def _trace_back(self) -> Iterator[Pair]:
        """Yield the copies of a schedule that ends with the outputs live, starting with the last copy."""
        needed = self._outputs
        for layer, before in zip(reversed(self.layers), [*reversed(self.layers[:-1]), None], strict=True):
            states = np.zeros(1, np.uint64) if before is None else before.states
            if layer.op != layer.stage and _has_superset(states, needed):
                continue
            if layer.op != layer.stage:
                yield layer.stage, layer.op
            needed = needed & ~self._results[layer.op] | self._operands[layer.op]
            assert _has_superset(states, needed), "every state has a predecessor"

    @cached_property
    def _first_stage(self) -> int:
        """The first stage in which copies may run."""
        return 0 if self.problem.allows_forward_copies else self.problem.earliest_stage

    @cached_property
    def _bit_numbers(self) -> dict[int, int]:
        """The bit index of each storage that is part of a state."""
        problem = self.problem
        copyable = np.flatnonzero(problem.may_run_again).tolist()
        read = {v for op in copyable for v in problem.operands_of(op)}
        results = {v for op in copyable for v in problem.results_of(op)}
        storages = sorted(v for v in results | read if not self._is_free[v])
        if len(storages) > MAX_STORAGES:
            raise TooManyStates(f"{len(storages)} storages")
        return {v: number for number, v in enumerate(storages)}

    @cached_property
    def _is_free(self) -> NDArray[np.bool_]:
        """For each storage, whether it is negligible."""
        return self.problem.storage_bytes <= NEGLIGIBLE_SHARE * self.budget

    @cached_property
    def _bits(self) -> States:
        """The states that contain a single storage, indexed by the bit of this storage."""
        return np.uint64(1) << np.arange(len(self._bit_numbers), dtype=np.uint64)

    def _state_of(self, storages: Iterable[int]) -> int:
        return sum(1 << self._bit_numbers[v] for v in set(storages) if v in self._bit_numbers)

    @cached_property
    def _operands(self) -> list[int]:
        """For each operation, its operands as a bit mask."""
        return [self._state_of(self.problem.operands_of(op)) for op in range(len(self.problem))]

    @cached_property
    def _results(self) -> list[int]:
        """For each operation, its results as a bit mask."""
        return [self._state_of(self.problem.results_of(op)) for op in range(len(self.problem))]

    @cached_property
    def _outputs(self) -> int:
        return self._state_of(np.flatnonzero(self.problem.is_output).tolist())

    @cached_property
    def _useful(self) -> list[int]:
        """For each stage and for the end, a bit mask of the storages that operations or copies in this or a later stage
        can read."""
        end, useful = len(self.problem), self._outputs
        stages = list[int]()
        for stage in reversed(range(end + 1)):
            useful |= self._operands[stage] if stage < end else 0
            if stage >= self._first_stage:
                for op in reversed(range(stage)):  # Operands are made before their readers.
                    if self.problem.may_run_again[op] and self._results[op] & useful:
                        useful |= self._operands[op]
            stages.append(useful)
        return stages[::-1]

    @cached_property
    def _bytes_outside(self) -> Ints:
        """For each stage and for the end, the bytes of the live storages that states omit. The bytes of the results of
        the stage's operation are included."""
        problem, end = self.problem, len(self.problem)
        change = np.zeros(end + 2, np.int64)
        for v in range(len(problem.storage_bytes)):
            if v not in self._bit_numbers and not self._is_free[v]:
                maker = int(problem.makers[v])
                last = end if problem.is_output[v] else max([maker, *problem.uses_of(v)])
                change[maker] += problem.storage_bytes[v]
                change[last + 1] -= problem.storage_bytes[v]
        return np.cumsum(change)[: end + 1]

    def _room(self, stage: int, op: int) -> int:
        """Return the bytes that remain for the storages of a state while an operation runs in a stage."""
        problem = self.problem
        not_yet_made = range(0) if op == stage or stage == len(problem) else problem.results_of(stage)
        counted = (v for v in not_yet_made if v not in self._bit_numbers and not self._is_free[v])
        unmade_bytes = sum(int(problem.storage_bytes[v]) for v in counted)
        return self.budget - int(self._bytes_outside[stage]) + unmade_bytes - int(problem.inner_bytes[op])

    @cached_property
    def _byte_tables(self) -> list[Ints]:
        """For each chunk of `CHUNK_BITS` storages of a state, a table with the bytes of each subset."""
        sizes = [int(self.problem.storage_bytes[v]) for v in self._bit_numbers]
        tables = list[Ints]()
        for start in range(0, max(1, len(sizes)), CHUNK_BITS):
            table = np.zeros(1 << CHUNK_BITS, np.int64)
            for bit, size in enumerate(sizes[start : start + CHUNK_BITS]):
                table[1 << bit : 2 << bit] = table[: 1 << bit] + size
            tables.append(table)
        return tables

    def _bytes(self, states: States) -> Ints:
        """Return, for each state, the bytes of its storages."""
        low = np.uint64((1 << CHUNK_BITS) - 1)
        parts = [
            table[((states >> np.uint64(CHUNK_BITS * chunk)) & low).astype(np.int64)]
            for chunk, table in enumerate(self._byte_tables)
        ]
        return np.add.reduce(parts)


def _has_superset(states: States, needed: int) -> bool:
    """Return whether one of the states includes all `needed` storages."""
    return bool(((states & np.uint64(needed)) == np.uint64(needed)).any())


def _maximal(states: States, bits: States) -> States:
    """Return the sorted states without each state that another state extends by exactly one storage."""
    larger = states[:, None] | bits
    # The states are sorted and distinct, so a binary search finds a larger one faster than `np.isin`.
    places = np.minimum(np.searchsorted(states, larger), len(states) - 1)
    return states[~((larger != states[:, None]) & (states[places] == larger)).any(axis=1)]
