"""A step in the order of an executor that starts operations as soon as they can run (`planning/orders.py`)."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from ...planning.orders import eager as eager_order
from ..step.order import Order
from ..step.phases import Phases
from ..step.step import Step
from .timeline import Timeline, timeline


def eager(phases: Phases) -> Phases:
    """The same function in the order of the eager schedule."""
    step = Step.of(phases)
    operations = step.numbered.operations_of(eager_order(step.graph))
    return Phases(Order.from_operations(phases.order.block, operations), phases.phase)


def eager_timeline(function: FuncOp, phases: Phases) -> Timeline:
    """Live bytes over the eager schedule; its `peak_bytes` is what rule R8 speaks of."""
    return timeline(function, eager(phases))
