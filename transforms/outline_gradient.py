"""recompute-outline-gradient: move each sequence of consecutive gradient operations into a `recompute.gradient`.

    %h = stablehlo.multiply %ct, %a                          %g = recompute.gradient {
        {recompute.phase = "gradient"}                 ->      %h = stablehlo.multiply %ct, %a : tensor<8xf32>
                                                               recompute.yield %h : tensor<8xf32>
                                                             } : tensor<8xf32>

The region implies the phase of its operations. Tokens and copies are treated as gradient operations. If other
operations separate the gradient operations, such as the forward pass of a later gradient, the pass creates one region
for each sequence. `recompute-inline-gradient` restores the flat form, with the phase on each operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..analysis.step.order import Order, functions_of
from ..analysis.step.phases import phases
from ..dialects.names import Names
from ..dialects.structured import GradientOp, YieldOp
from ..support.phase import Phase
from .inline_gradient import inline_gradient


def outline_gradient(module: ModuleOp) -> int:
    """Move the gradient operations of each function into regions. Return the number of regions.

    Raises:
        Refusal: The phases of a function contradict each other.
    """
    inline_gradient(module)
    outlined = 0
    for function in functions_of(module):
        if (classified := phases(function)) is None:
            continue
        for is_gradient, run in groupby(classified.order.operations, classified.is_gradient):
            if is_gradient:
                _outline_run(list(run), classified.order)
                outlined += 1
    return outlined


def _outline_run(run: Sequence[Operation], order: Order) -> None:
    inside = set(run)
    values = [
        result
        for op in run
        for result in op.results
        if any(order.owner_here(use.operation) not in inside for use in result.uses)
    ]
    body = Block()
    gradient = GradientOp(Region(body), [value.type for value in values])
    gradient.location = run[0].location
    Rewriter.insert_op(gradient, InsertPoint.before(run[0]))
    for value, result in zip(values, gradient.results, strict=True):
        result.name_hint = value.name_hint
        _redirect_outside_uses(value, result, inside, order)
    for op in run:
        op.detach()
        body.add_op(op)
        if op.attributes.get(Names.PHASE) == StringAttr(Phase.GRADIENT.value):
            del op.attributes[Names.PHASE]
    body.add_op(YieldOp(values))


def _redirect_outside_uses(value: SSAValue, result: SSAValue, inside: set[Operation], order: Order) -> None:
    """Redirect uses of the value outside the region to the result of the region."""
    for use in list(value.uses):
        if order.owner_here(use.operation) not in inside:
            use.operation.operands[use.index] = result


@dataclass(frozen=True)
class OutlineGradientPass(ModulePass):
    name = "recompute-outline-gradient"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        outline_gradient(op)
