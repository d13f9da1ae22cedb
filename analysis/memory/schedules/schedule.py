"""An order of the operations with a low peak, within what must run before what.

Each stretch of forward or other operations is ordered by itself: what is alive between two stretches does not depend on
the order within them, so the peak is the highest of theirs, and the given order is kept where no rule does better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

from ....planning.evaluate import peak_bytes
from ....planning.live_set import Footprint, LiveSet
from ....planning.orders import eager
from ...step.functions import single_block
from ...step.graph_of import graph_of
from ...step.order import Order
from ...step.phases import Phases, phases
from .list_schedules import RULES, Stretch
from .precedence import Precedence


@dataclass(frozen=True)
class Schedule:
    """An order and its peak, beside the peak of the given order. `is_new` where it is lower."""

    order: Order
    given_peak_bytes: int
    peak_bytes: int

    @property
    def is_new(self) -> bool:
        return self.peak_bytes < self.given_peak_bytes


def low_peak(function: FuncOp) -> Schedule:
    """The best order found, or the given one. The peak of an executor that starts what it can does not rise.

    Raises `Refusal` for several blocks, for dynamic shapes, and for regions that are not flattened yet.
    """
    found = phases(function)
    given = found.order if found is not None else Order.of(single_block(function))
    before = _Peaks.of(given, found)
    stretches = _ordered(given, found)
    for takes in _CHOICES:
        order = _joined(given, stretches, takes)
        after = _Peaks.of(order, found)
        if after.in_order < before.in_order and after.eager <= before.eager:
            return Schedule(order, before.in_order, after.in_order)
    return Schedule(given, before.in_order, before.in_order)


@dataclass(frozen=True)
class _Ordered:
    """A stretch in its new order; `is_forward` says of which kind it is."""

    given: range
    chosen: list[int]
    is_forward: bool


# An executor that starts what it can follows the order of the forward pass: where its peak would rise, half will do.
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
    def of(cls, order: Order, found: Phases | None) -> _Peaks:
        graph = graph_of(order, found.phase if found is not None else None).graph
        return cls(peak_bytes(graph), peak_bytes(graph, eager(graph)) if found is not None else 0)


def _ordered(given: Order, found: Phases | None) -> list[_Ordered]:
    """Each stretch in the order that has the lowest peak; the given order where none is lower."""
    precedence, footprint = Precedence.of(given, found), Footprint.of(graph_of(given).graph)
    live = LiveSet.at_start(footprint)
    ordered = list[_Ordered]()
    for operations in precedence.stretches:
        stretch = Stretch(operations, precedence, footprint, live.unread)
        candidates = [list(operations), *(_constants_where_used(rule(stretch), precedence) for rule in RULES)]
        chosen = min(candidates, key=live.peak_of)
        for operation in chosen:
            live.run(operation)
        is_forward = found is not None and found.is_forward(given.operations[operations.start])
        ordered.append(_Ordered(operations, chosen, is_forward))
    return ordered


def _constants_where_used(order: list[int], precedence: Precedence) -> list[int]:
    """Constants cost nothing wherever they stand; people look for them where they are read."""
    found = dict[int, None]()

    def write(operation: int) -> None:
        for needed in sorted(precedence.needs[operation]):
            if needed in precedence.constants and needed not in found:
                write(needed)
        found[operation] = None

    for operation in order:
        if operation not in precedence.constants:
            write(operation)
    # What only a later stretch reads.
    return [*found, *(operation for operation in order if operation not in found)]


def _joined(given: Order, stretches: list[_Ordered], takes: Callable[[_Ordered], bool]) -> Order:
    positions = [one for stretch in stretches for one in (stretch.chosen if takes(stretch) else stretch.given)]
    return Order.from_operations(
        given.block, [*(given.operations[position] for position in positions), given.operations[-1]]
    )
