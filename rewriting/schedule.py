"""recompute-schedule: reorder operations to lower the peak, without adding, removing or changing operations.

    %a = stablehlo.sine %x                  %a = stablehlo.sine %x
    %b = stablehlo.cosine %x        ->      %c = stablehlo.reduce(%a …)
    %c = stablehlo.reduce(%a …)             %b = stablehlo.cosine %x
    %d = stablehlo.reduce(%b …)             %d = stablehlo.reduce(%b …)

A new order is used only if its peak is lower. Operations with effects keep their order, copies stay after their tokens,
and the forward pass stays before the backward pass. XLA uses its own schedule instead of program order
(docs/limits.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..analysis.step.order import Order, functions_of
from ..search.list_schedules import lowest_peak_schedule
from ..support.remarks import Remark, RemarkKind, tell
from ..support.units import format_bytes


def schedule(module: ModuleOp) -> list[Remark]:
    """Reorder the operations of each function if this lowers its peak. Return a remark for each function.

    Raises:
        Refusal: A function has several blocks, dynamic shapes, or regions that are not inlined yet.
    """
    remarks = list[Remark]()
    for function in functions_of(module):
        result = lowest_peak_schedule(function)
        given = format_bytes(result.given_peak_bytes)
        if result.is_new:
            _write_order(result.order)
            words = f"this order lowers the peak from {given} to {format_bytes(result.peak_bytes)}"
        else:
            words = f"the order stays unchanged: no order with a peak below {given} was found"
        kind = RemarkKind.PASSED if result.is_new else RemarkKind.MISSED
        amounts = ("given_peak_bytes", result.given_peak_bytes), ("peak_bytes", result.peak_bytes)
        remarks.append(Remark(function, words, kind, amounts=amounts))
    return remarks


def _write_order(order: Order) -> None:
    for op in order.operations:
        op.detach()
    order.block.add_ops(order.operations)


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    name = "recompute-schedule"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tell(ctx, schedule(op))
