"""Find an order of the operations with a low peak, under precedence constraints.

Each stretch of forward or other operations is ordered separately: the live values between two stretches do not depend
on the order within them, so the peak is the maximum over the stretches. A stretch keeps its order if no rule is better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

from ....planning.liveness import Footprint, LiveSet, peak_bytes
from ....planning.orders import eager
from ...step.functions import single_block
from ...step.graph_of import graph_of
from ...step.order import Order
from ...step.phases import Phases, phases
from .list_schedules import RULES, Stretch
from .precedence import Precedence


@dataclass(frozen=True)
class MemorySchedule:
    """An order with its peak, and the peak of the given order. `is_new`: whether the peak is lower."""

    order: Order
    given_peak_bytes: int
    peak_bytes: int

    @property
    def is_new(self) -> bool:
        return self.peak_bytes < self.given_peak_bytes


def low_peak(function: FuncOp) -> MemorySchedule:
    """The best order found, or the program order. The peak of the eager schedule never rises.

    Raises `Refusal` for several blocks, for dynamic shapes, and for regions that are not inlined yet.
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
class _Ordered:
    """A stretch in program order and in its new order; `is_forward`: whether it is of the forward pass."""

    program_order: range
    chosen: list[int]
    is_forward: bool


# The eager schedule follows the order of the forward pass. If its peak rises, reorder only one kind of stretches.
_CHOICES: tuple[Callable[[_Ordered], bool], ...] = (
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
        return cls(peak_bytes(graph), peak_bytes(graph, eager(graph)) if classified is not None else 0)


def _order_stretches(order: Order, classified: Phases | None) -> list[_Ordered]:
    """Each stretch in the order with the lowest peak; program order if no other order is lower."""
    precedence, footprint = Precedence.of(order, classified), Footprint.of(graph_of(order).graph)
    live = LiveSet.at_start(footprint)
    ordered = list[_Ordered]()
    for operations in precedence.stretches:
        stretch = Stretch(operations, precedence, footprint, live.unread)
        candidates = [list(operations), *(_constants_where_used(rule(stretch), precedence) for rule in RULES)]
        chosen = min(candidates, key=live.peak_of)
        for operation in chosen:
            live.run(operation)
        is_forward = classified is not None and classified.is_forward(order.operations[operations.start])
        ordered.append(_Ordered(operations, chosen, is_forward))
    return ordered


def _constants_where_used(order: list[int], precedence: Precedence) -> list[int]:
    """Move constants in front of their first reader: they cost nothing anywhere, and readers expect them there."""
    placed = dict[int, None]()

    def write(operation: int) -> None:
        for needed in sorted(precedence.needs[operation]):
            if needed in precedence.constants and needed not in placed:
                write(needed)
        placed[operation] = None

    for operation in order:
        if operation not in precedence.constants:
            write(operation)
    # Constants that only a later stretch reads.
    return [*placed, *(operation for operation in order if operation not in placed)]


def _join(order: Order, stretches: list[_Ordered], is_reordered: Callable[[_Ordered], bool]) -> Order:
    positions = [
        position
        for stretch in stretches
        for position in (stretch.chosen if is_reordered(stretch) else stretch.program_order)
    ]
    return Order.from_operations(
        order.block, [*(order.operations[position] for position in positions), order.operations[-1]]
    )
