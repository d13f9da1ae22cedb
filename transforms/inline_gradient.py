"""recompute-inline-gradient: replace each `recompute.gradient` with its operations, and write phase attributes on them.

    %g = recompute.gradient {
      %h = stablehlo.multiply %ct, %a : tensor<8xf32>          %h = stablehlo.multiply %ct, %a
      recompute.yield %h : tensor<8xf32>                 ->        {recompute.phase = "gradient"}
    } : tensor<8xf32>

Forward operations before the first gradient stay unchanged. If a later gradient depends on operations after the first
gradient, positions no longer determine the phases, so the phases of all operations are written. An example is a block
with two forward passes, each followed by its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ..analysis.step.order import Order, constants_only, producers
from ..dialects.names import Names
from ..dialects.structured import GradientOp, splice
from ..support.diagnostics import Refusal
from ..support.operations import every_operation
from ..support.phase import Phase


def inline_gradient(module: ModuleOp) -> int:
    """Flatten every gradient region. Return the number of regions.

    Raises:
        Refusal: A region is at an invalid place.
    """
    gradients = [op for op in every_operation(module) if type(op) is GradientOp]
    for gradient in gradients:
        _check_place(gradient)
    for block in dict.fromkeys(op.parent for op in gradients):
        assert block is not None, "a gradient region is in a block"
        _write_phases_between(block)
    for gradient in gradients:
        for op in splice(gradient):
            op.attributes.setdefault(Names.PHASE, StringAttr(Phase.GRADIENT.value))
    return len(gradients)


def _check_place(gradient: GradientOp) -> None:
    """Raise `Refusal` if the verifier rejects the position of the region. Inlining may have moved the region to an
    invalid position."""
    try:
        gradient.verify_place(gradient.parent_op())
    except VerifyException as error:
        raise Refusal(gradient, str(error)) from error


def _write_phases_between(block: Block) -> None:
    """Write the phase of every operation if a gradient depends on operations after the first gradient.

    The operations after the first gradient are the forward pass of the later gradient, although their positions would
    assign them to the update.
    """
    order = Order.of(block)
    needed = _needed_by_gradients(order)
    first = next(index for index, op in enumerate(order.operations) if isinstance(op, GradientOp))
    if not any(op in needed and not isinstance(op, GradientOp) for op in order.operations[first:]):
        return
    for index, op in enumerate(order.operations[:-1]):
        if not isinstance(op, GradientOp):
            phase = Phase.PRIMAL if index < first or op in needed else Phase.UPDATE
            op.attributes.setdefault(Names.PHASE, StringAttr(phase.value))


def _needed_by_gradients(order: Order) -> set[Operation]:
    """Return the operations on which gradients depend, except constant expressions, which may run anywhere."""
    constants = constants_only(order)
    needed = set[Operation]()
    for op in reversed(order.operations):
        if isinstance(op, GradientOp) or op in needed:
            needed.update(producer for producer in producers(op) if not constants.issuperset(producer.results))
    return needed


@dataclass(frozen=True)
class InlineGradientPass(ModulePass):
    name = "recompute-inline-gradient"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_gradient(op)
