"""List scheduling: find an order of a step's operations with a lower peak, under precedence constraints.

Every schedule respects operands, captured values, the order of effects, and the sequence of phases. Since the position
in the program determines phases (`analysis/step/phases.py`), a forward operation stays on its side of each gradient
operation. Therefore the block is divided into *stretches*, whose operations are either all in the forward pass or all
outside it. Each stretch is scheduled separately. The values that are live between two stretches do not depend on the
order within them, so the peak is the maximum over the stretches. The first operation of each later stretch stays first,
because its location may be all that marks the start of the backward pass.

Three rules are tried, because the best rule differs among steps. A stretch keeps its order if no rule lowers its peak:

    by_bytes_freed      forwards: the ready operation that frees the most bytes (Goodman and Hsu, "Code scheduling and
                        register allocation in large basic blocks", 1988; XLA's list scheduler)
    by_bytes_revived    backwards from the end: among the operations without remaining readers, the operation that makes
                        the fewest bytes live
    just_in_time        each operation shortly before its readers: depth first from the results (Sethi and Ullman, "The
                        generation of optimal code for arithmetic expressions", 1970)

XLA has similar rules (`xla/service/hlo_memory_scheduler.cc`). Each rule takes about as long as sorting.

Two other modules predict the order in which an executor runs a step: `planning/orders.py` for an eager executor, and
`analysis/memory/xla/scheduled_kernels.py` for XLA:CPU.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ..analysis.step.graph_of import graph_of
from ..analysis.step.order import Order, constants_only, producers, single_block
from ..analysis.step.phase_sources import source_of, sources
from ..analysis.step.phases import Phases, phases
from ..planning.liveness import Footprint, LiveSet, peak_bytes
from ..planning.orders import ReadyTracker, eager_order
from ..rules.effects import is_ordering, why_impure


@dataclass(frozen=True)
class Precedence:
    """Precedence constraints between operations. Operations are identified by their position in program order.

    Attributes:
        stretches: The parts of the block that are scheduled separately, as ranges of positions. Either all operations
            of a part belong to the forward pass, or none does. The terminator belongs to no part, and runs last.
        needs: For each operation, the operations of its stretch that must precede it.
        constants: The operations that are computed only from constants.
    """

    stretches: tuple[range, ...]
    needs: tuple[frozenset[int], ...]
    constants: frozenset[int]

    @classmethod
    def of(cls, order: Order, phases: Phases | None) -> Precedence:
        values = constants_only(order)
        constants = frozenset(i for i, op in enumerate(order.operations) if _is_constant(op, values))
        stretches = _stretches(order, phases, values)
        needs = [
            frozenset(order.position[producer] for producer in producers(op) if producer in order.position)
            for op in order.operations
        ]
        for before, after in _effects_in_order(order):
            needs[after] |= {before}
        for stretch in stretches:
            for index in stretch:
                first = {stretch.start} if index > stretch.start > 0 else set[int]()
                needs[index] = frozenset(op for op in needs[index] if op >= stretch.start) | first
        return cls(stretches, tuple(needs), constants)


def _is_constant(op: Operation, values: Container[SSAValue]) -> bool:
    return bool(op.results) and all(result in values for result in op.results)


def _stretches(order: Order, phases: Phases | None, values: Container[SSAValue]) -> tuple[range, ...]:
    """Split the operations where the forward pass begins or ends; constants without phase information are ignored."""
    starts, forward = [0], None
    for index, op in enumerate(order.operations[:-1]):
        if phases is None or (_is_constant(op, values) and not _has_phase_source(op)):
            continue
        if forward is not None and forward != phases.is_forward(op):
            starts.append(index)
        forward = phases.is_forward(op)
    ends = [*starts[1:], len(order.operations) - 1]
    return tuple(range(start, end) for start, end in zip(starts, ends, strict=True))


def _has_phase_source(op: Operation) -> bool:
    return source_of(op, sources()) is not None


def _effects_in_order(order: Order) -> list[tuple[int, int]]:
    """Return the pairs of successive operations with effects, whose order must be preserved. Effects include unknown
    effects and memory reads."""
    impure = [i for i, op in enumerate(order.operations[:-1]) if not is_ordering(op) and why_impure(op) is not None]
    return list(pairwise(impure))


@dataclass(frozen=True)
class Stretch:
    """A range of operations to schedule.

    `unread`: for each storage, the number of its readers that have not run when the stretch begins.
    """

    operations: range
    precedence: Precedence
    footprint: Footprint
    unread: Sequence[int]

    @property
    def needs(self) -> dict[int, Set[int]]:
        return {operation: self.precedence.needs[operation] for operation in self.operations}

    @property
    def needed_by(self) -> dict[int, list[int]]:
        readers: dict[int, list[int]] = {operation: [] for operation in self.operations}
        for operation, needs in self.needs.items():
            for needed in needs:
                readers[needed].append(operation)
        return readers


def by_bytes_freed(stretch: Stretch) -> list[int]:
    """Schedule forwards: always run the ready operation whose execution frees the most bytes."""
    footprint, unread = stretch.footprint, dict[int, int]()

    def remaining_readers(storage: int) -> int:
        return unread.get(storage, stretch.unread[storage])

    def cost(op: int) -> int:
        return footprint.made_bytes(op) - sum(
            footprint.bytes[storage] for storage in footprint.read[op] if remaining_readers(storage) == 1
        )

    def run(op: int) -> Iterable[int]:
        for storage in footprint.read[op]:
            unread[storage] = remaining_readers(storage) - 1
            if unread[storage] == 1:
                yield from footprint.readers[storage]

    return _list_schedule(stretch.needs, lambda op: (cost(op), op), run)


def by_bytes_revived(stretch: Stretch) -> list[int]:
    """Schedule backwards: among the operations without unscheduled readers, take the operation that makes the fewest
    bytes live."""
    footprint, end = stretch.footprint, stretch.operations.stop
    live = set[int]()

    def is_live(storage: int) -> bool:
        return storage in live or footprint.readers[storage][-1] >= end

    def cost(op: int) -> int:
        revived = sum(footprint.bytes[storage] for storage in footprint.read[op] if not is_live(storage))
        return revived - footprint.made_bytes(op)

    def run(op: int) -> Iterable[int]:
        for storage in footprint.read[op]:
            if not is_live(storage):
                live.add(storage)
                yield from footprint.readers[storage]

    return _list_schedule(stretch.needed_by, lambda op: (cost(op), -op), run)[::-1]


def just_in_time(stretch: Stretch) -> list[int]:
    """Schedule each operation shortly before its readers, by depth-first search from the results."""
    ready = ReadyTracker(stretch.needed_by)
    stack, order = ready.at_start(), list[int]()
    while stack:
        order.append(stack.pop())
        stack += sorted(ready.complete(order[-1]))
    return order[::-1]


def _list_schedule(
    waits_for: Mapping[int, Iterable[int]], cost: Callable[[int], tuple[int, int]], run: Callable[[int], Iterable[int]]
) -> list[int]:
    """Repeatedly schedule the ready operation with the lowest cost.

    `run` is called with each scheduled operation and returns the operations whose cost may have fallen.
    """
    readiness = ReadyTracker(waits_for)
    ready = set(readiness.at_start())
    heap = [(cost(op), op) for op in ready]
    heapq.heapify(heap)
    order = list[int]()
    while heap:
        entry_cost, op = heapq.heappop(heap)
        # Skip outdated entries: they were pushed before the operation became cheaper.
        if op not in ready or entry_cost != cost(op):
            continue
        ready.remove(op)
        order.append(op)
        cheaper = [other for other in run(op) if other in ready]
        new = sorted(readiness.complete(op))
        ready.update(new)
        for other in (*cheaper, *new):
            heapq.heappush(heap, (cost(other), other))
    return order


RULES: tuple[Callable[[Stretch], list[int]], ...] = (by_bytes_freed, by_bytes_revived, just_in_time)


@dataclass(frozen=True)
class MemorySchedule:
    """An order of the operations with its peak, and the peak of the program order."""

    order: Order
    given_peak_bytes: int
    peak_bytes: int

    @property
    def is_new(self) -> bool:
        """Whether the order has a lower peak than the program order."""
        return self.peak_bytes < self.given_peak_bytes


def lowest_peak_schedule(function: FuncOp) -> MemorySchedule:
    """Return an order with a lower peak, or the program order if no order lowers it.

    The order never raises the peak of the eager schedule.

    Raises:
        Refusal: The function has several blocks, dynamic shapes, or regions that are not inlined yet.
    """
    classified = phases(function)
    program_order = classified.order if classified is not None else Order.of(single_block(function))
    before = _Peaks.of(program_order, classified)
    stretches = _order_stretches(program_order, classified)
    for is_reordered in _CHOICES:
        order = _join(program_order, stretches, is_reordered)
        after = _Peaks.of(order, classified)
        if after.in_order < before.in_order and after.eager <= before.eager:
            return MemorySchedule(order, before.in_order, after.in_order)
    return MemorySchedule(program_order, before.in_order, before.in_order)


@dataclass(frozen=True)
class _ReorderedStretch:
    """A stretch in program order and in its new order.

    `is_forward`: whether it belongs to the forward pass.
    """

    program_order: range
    chosen: list[int]
    is_forward: bool


# The eager schedule follows the order of the forward pass. If its peak rises, reorder only one kind of stretches.
_CHOICES: tuple[Callable[[_ReorderedStretch], bool], ...] = (
    lambda stretch: True,
    lambda stretch: not stretch.is_forward,
    lambda stretch: stretch.is_forward,
)


@dataclass(frozen=True)
class _Peaks:
    in_order: int
    eager: int

    @classmethod
    def of(cls, order: Order, classified: Phases | None) -> _Peaks:
        graph = graph_of(order, classified.phase if classified is not None else None).graph
        return cls(peak_bytes(graph), peak_bytes(graph, eager_order(graph)) if classified is not None else 0)


def _order_stretches(order: Order, classified: Phases | None) -> list[_ReorderedStretch]:
    """Reorder each stretch by the candidate order with the lowest peak. In a tie, keep the program order."""
    precedence = Precedence.of(order, classified)
    footprint = Footprint.of(graph_of(order).graph)
    live = LiveSet.at_start(footprint)
    reordered = list[_ReorderedStretch]()
    for operations in precedence.stretches:
        stretch = Stretch(operations, precedence, footprint, live.unread)
        candidates = [list(operations), *(_sink_constants(rule(stretch), precedence) for rule in RULES)]
        chosen = min(candidates, key=live.peak_of)
        for operation in chosen:
            live.run(operation)
        is_forward = classified is not None and classified.is_forward(order.operations[operations.start])
        reordered.append(_ReorderedStretch(operations, chosen, is_forward))
    return reordered


def _sink_constants(order: list[int], precedence: Precedence) -> list[int]:
    """Move each constant directly before its first reader. Constants use no memory, so this position only makes the
    program easier to read."""
    placed = dict[int, None]()

    def write(operation: int) -> None:
        for needed in sorted(precedence.needs[operation]):
            if needed in precedence.constants and needed not in placed:
                write(needed)
        placed[operation] = None

    for operation in order:
        if operation not in precedence.constants:
            write(operation)
    # Append the constants that only a later stretch reads.
    return [*placed, *(operation for operation in order if operation not in placed)]


def _join(order: Order, stretches: list[_ReorderedStretch], is_reordered: Callable[[_ReorderedStretch], bool]) -> Order:
    positions = [
        position
        for stretch in stretches
        for position in (stretch.chosen if is_reordered(stretch) else stretch.program_order)
    ]
    return Order.from_operations(
        order.block, [*(order.operations[position] for position in positions), order.operations[-1]]
    )
