"""recompute-inline-composites: replace composites with their decompositions, and inline all calls to private functions.

    %1 = stablehlo.composite "acme.twice" %0 {decomposition = @twice}        ->        %1 = stablehlo.add %0, %0

A composite represents an operation of another library. A composite is never copied, because a consumer may replace the
original and the copy with kernels that compute different values. For a consumer without such kernels, this pass makes
the operations of the decomposition available for recomputation.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..dialects.stablehlo.composite import CompositeOp
from ..support.diagnostics import Refusal
from ..support.operations import every_operation
from ..support.remarks import tell
from .calls.call_attributes import keep_whole
from .inline import inline, why_calls_stay


def call_decompositions(module: ModuleOp) -> int:
    """Replace each composite with a call to its decomposition. Return the number of composites.

    Raises:
        Refusal: A composite has regions, or its decomposition is not in the module.
    """
    composites = [op for op in every_operation(module) if isinstance(op, CompositeOp)]
    for op in composites:
        name = op.composite_name.data
        if op.regions:
            raise Refusal(
                op,
                f"composite '{name}' cannot be inlined: it has regions, and a call would lose them",
            )
        if op.callee is None:
            raise Refusal(op, f"composite '{name}' cannot be inlined: its decomposition is not in the module")
        call = CallOp(op.decomposition, op.operands, op.result_types)
        call.attributes, call.location = op.attributes, op.location
        Rewriter.replace_op(op, call)
    return len(composites)


@dataclass(frozen=True)
class InlineCompositesPass(ModulePass):
    name = "recompute-inline-composites"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if call_decompositions(op):
            with keep_whole(op):
                tell(ctx, why_calls_stay(op))
                inline(op)
