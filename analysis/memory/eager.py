"""The eager schedule of a step: operations start as soon as their operands are available (`planning/orders.py`)."""

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
    """Live bytes over the eager schedule; rule R8 compares its `peak_bytes` with that of the program order."""
    return timeline(function, eager(phases))
