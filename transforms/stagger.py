"""recompute-stagger: delay operations of a segment that could run long before the others, such as random bit
generation.

    %bits = f(%key)                         %x1, %key1 = stablehlo.optimization_barrier %x, %key
    %y = g(%x, %bits)           ->          %bits = f(%key1)
                                            %y = g(%x1, %bits)

Here, `%x` comes from the previous segment. Without the barrier, an executor that runs the program breadth first, such
as XLA:CPU, would compute the bits of all layers before the first layer. For an executor that follows program order, the
pass makes no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, NameLoc, StringAttr, UnknownLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..analysis.request.segments import NoSuchSegment, find_segments
from ..analysis.step.graph_of import NumberedGraph
from ..analysis.step.jax_paths import path_of, split_path
from ..analysis.step.module_steps import steps_of
from ..analysis.step.order import Order
from ..analysis.step.phases import Phases, updated_phases
from ..analysis.step.step import Step
from ..dialects.names import Names
from ..dialects.stablehlo.control import OptimizationBarrierOp
from ..planning.by_segment.early_parts import EarlyPart, early_parts
from ..support.diagnostics import BadRequest
from ..support.remarks import Remark, tell
from .outlining.nested_steps import outline_temporarily


def stagger(
    module: ModuleOp,
    segments: str = "auto",
    phases_of: Mapping[FuncOp, Phases] = MappingProxyType({}),
    unchanged: dict[FuncOp, NumberedGraph] | None = None,
) -> list[EarlyPart]:
    """Insert a barrier before each segment part that an executor could run too early. Return these parts.

    Args:
        module: The module, which is changed in place.
        segments: `auto`, or a shell-style pattern for scopes.
        phases_of: The phases of the functions before copies and tokens were inserted.
        unchanged: A dictionary that receives the graph of each function without an inserted barrier. The graph lacks
            the data that only planners read.

    Raises:
        Refusal: The pattern matches no segment.
    """
    early = list[EarlyPart]()
    steps = (
        ((function, updated_phases(before)) for function, before in phases_of.items())
        if phases_of
        else steps_of(module)
    )
    for function, phases in steps:
        try:
            segment_of = find_segments(phases, segments)
        except NoSuchSegment as error:
            raise BadRequest(function, str(error)) from error
        step = Step.of(phases, bare=True)
        parts = early_parts(step.graph, {step.position(op): segment for op, segment in segment_of.items()})
        if not parts and unchanged is not None:
            unchanged[function] = step.numbered
        newest = dict[SSAValue, SSAValue]()
        for part in parts:
            _insert_barrier(part, step, newest)
        early.extend(parts)
    return early


def _insert_barrier(part: EarlyPart, step: Step, newest: dict[SSAValue, SSAValue]) -> None:
    """Insert the barrier before an early part.

    `newest`: maps each value to the result of its latest barrier. Later segments read this result. The map is updated
    in place.
    """
    values = step.numbered.values_of(part.barrier_operands)
    start = part.operations[0]
    insertion = step.operation(start)
    barrier = OptimizationBarrierOp([newest.get(value, value) for value in values])
    path = "/".join([*split_path(path_of(insertion.location))[:-1], "stagger"])
    barrier.location = NameLoc(StringAttr(path), UnknownLoc())
    if Names.PHASE in insertion.attributes:
        barrier.attributes[Names.PHASE] = insertion.attributes[Names.PHASE]
    Rewriter.insert_op(barrier, InsertPoint.before(insertion))
    for value, old, new in zip(values, barrier.operands, barrier.results, strict=True):
        new.name_hint = old.name_hint
        _redirect_later_uses(old, new, step.phases.order, start)
        newest[value] = new


def _redirect_later_uses(old: SSAValue, new: SSAValue, order: Order, start: int) -> None:
    for use in list(old.uses):
        owner = order.owner_here(use.operation)
        if owner is not None and order.position[owner] >= start:
            use.operation.operands[use.index] = new


@dataclass(frozen=True)
class StaggerPass(ModulePass):
    """
    segments: `auto`, or a shell-style pattern for scopes, as in recompute-mark.
    """

    name = "recompute-stagger"

    segments: str = "auto"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with outline_temporarily(op):
            parts = stagger(op, self.segments)
        if not parts:
            tell(ctx, [Remark(op, "nothing is delayed: no segment has a part that could run long before it is needed")])
