"""recompute-inline-gradient: put the operations of every `recompute.gradient` in its place, and state their phase.

    %g = recompute.gradient {
      %h = stablehlo.multiply %ct, %a : tensor<8xf32>          %h = stablehlo.multiply %ct, %a
      recompute.yield %h : tensor<8xf32>                 ->        {recompute.phase = "gradient"}
    } : tensor<8xf32>

Forward operations in front of the first gradient stay as they are. Where a later gradient needs operations between the
two, f1 b1 f2 b2, the phases of the whole function are stated: position says nothing there.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ..analysis.step.constants import constants_only
from ..analysis.step.order import Order, producers
from ..dialects.recompute import Names
from ..dialects.structured import GradientOp, splice
from ..support.diagnostics import Refusal
from ..support.walk import every_operation


def inline_gradient(module: ModuleOp) -> int:
    """Flatten every gradient region; returns how many. Raises `Refusal` where flattening would lose something."""
    found = [op for op in every_operation(module) if isinstance(op, GradientOp)]
    for gradient in found:
        _check_place(gradient)
    for block in dict.fromkeys(op.parent for op in found):
        assert block is not None, "what is found in a module stands in a block"
        _state_phases_between(block)
    for gradient in found:
        for op in splice(gradient):
            op.attributes.setdefault(Names.PHASE, StringAttr("gradient"))
    return len(found)


def _check_place(gradient: GradientOp) -> None:
    """Inlined functions may have put it where it could not be written."""
    try:
        gradient.verify_place(gradient.parent_op())
    except VerifyException as error:
        raise Refusal(gradient, str(error)) from error


def _state_phases_between(block: Block) -> None:
    """Operations between gradients that a later one needs are its forward pass; then everything says its phase."""
    order = Order.of(block)
    needed = _needed_by_gradients(order)
    first = next(index for index, op in enumerate(order.operations) if isinstance(op, GradientOp))
    if not any(op in needed and not isinstance(op, GradientOp) for op in order.operations[first:]):
        return
    for index, op in enumerate(order.operations[:-1]):
        if not isinstance(op, GradientOp):
            phase = "primal" if index < first or op in needed else "update"
            op.attributes.setdefault(Names.PHASE, StringAttr(phase))


def _needed_by_gradients(order: Order) -> set[Operation]:
    """What gradients need, constants left out: they run anywhere."""
    constants = constants_only(order)
    needed = set[Operation]()
    for op in reversed(order.operations):
        if isinstance(op, GradientOp) or op in needed:
            needed.update(made for made in producers(op) if not constants.issuperset(made.results))
    return needed


@dataclass(frozen=True)
class InlineGradientPass(ModulePass):
    """Flatten `recompute.gradient` regions."""

    name = "recompute-inline-gradient"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_gradient(op)
