"""recompute-inline-segments: replace each `recompute.segment` with its operations, and mark them.

    %y = recompute.segment "block0" {                   %a = stablehlo.sine %x
      %a = stablehlo.sine %x : tensor<8xf32>                {recompute.segment = "block0", recompute.recompute = true}
      %b = stablehlo.tanh %a : tensor<8xf32>      ->    %b = stablehlo.tanh %a
      recompute.yield %b : tensor<8xf32>                    {recompute.segment = "block0", recompute.checkpoint}
    } : tensor<8xf32>

Two kinds of values are kept, unless the segment has `recompute.output_recompute`: outputs of the segment (later forward
operations read them), and values that are live after the backward pass. A segment with `recompute.recompute = false` is
kept as a whole; any other mark of a segment becomes the mark of its operations. The segment attribute of operations in
a nested segment is the path of that segment, such as `outer/inner`. If a name is taken, a number is appended, as in
`block0#1`. Attributes that an operation already has take precedence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ..analysis.copies.segment_outputs import kept_results_of
from ..analysis.step.marks import explicit_mark
from ..analysis.step.order import Order
from ..analysis.step.phases import Phases, phases
from ..analysis.step.step import Step
from ..dialects.names import Names
from ..dialects.result_marks import decided_mark, kind_of
from ..dialects.structured import SegmentOp, splice
from ..support.operations import every_operation
from ..support.phase import Phase
from .attributes.switches import propagate_switches, switches_in
from .attributes.write_attributes import propagate_names
from .take_scopes import take_scopes

UNNAMED = "segment"


@dataclass(frozen=True)
class FlattenedSegment:
    """A flattened segment: its attributes, and its operations without the operations of nested segments."""

    attributes: Mapping[str, Attribute]
    operations: tuple[Operation, ...]

    @property
    def mark(self) -> Attribute:
        """The mark that the operations of the segment get."""
        return self.attributes.get(Names.RECOMPUTE, decided_mark([True]))

    @property
    def is_kept(self) -> bool:
        return (kind := kind_of(self.mark)) is not None and not kind.recomputes

    @property
    def recomputes_outputs(self) -> bool:
        return Names.OUTPUT_RECOMPUTE in self.attributes


def inline_segments(module: ModuleOp) -> int:
    """Flatten every segment, and mark its operations. Return the number of segments. Scopes that mark segments are
    converted to attributes.

    Raises:
        Refusal: A scope is malformed, or the phases of a function contradict each other.
    """
    take_scopes(module)
    flattened = 0
    operations = every_operation(module)
    if not any(isinstance(op, SegmentOp) for op in operations):
        return 0
    for function in [op for op in operations if isinstance(op, FuncOp)]:
        used_names = _segment_names_of(function)
        instances = list[FlattenedSegment]()
        for segment in _outermost(function):
            instances.extend(_flatten(segment, "", used_names))
        if instances:
            _mark(function, instances)
        flattened += len(instances)
    return flattened


def _outermost(function: FuncOp) -> list[SegmentOp]:
    segments = (op for op in every_operation(function) if isinstance(op, SegmentOp))
    return [segment for segment in segments if not isinstance(segment.parent_op(), SegmentOp)]


def _segment_names_of(function: FuncOp) -> set[str]:
    """Return the segment names in the attributes of the function's operations."""
    stated = (op.attributes.get(Names.SEGMENT) for op in every_operation(function) if not isinstance(op, SegmentOp))
    return {segment_name.data for segment_name in stated if isinstance(segment_name, StringAttr)}


def _flatten(segment: SegmentOp, outer: str, used_names: set[str]) -> list[FlattenedSegment]:
    """Flatten a segment and its nested segments. Return the flattened segments, starting with the outermost."""
    attributes = dict(segment.attributes)
    segment_name = _unique_name(segment, outer, used_names)
    propagate_names(segment, segment.terminator.operands, set(segment.body.block.ops))
    operations = splice(segment)
    own = tuple(op for op in operations if not isinstance(op, SegmentOp))
    for op in operations:
        if Names.PHASE in attributes:
            op.attributes.setdefault(Names.PHASE, attributes[Names.PHASE])
    propagate_switches(own, switches_in(attributes))
    for op in own:
        op.attributes.setdefault(Names.SEGMENT, StringAttr(segment_name))
    inner = [op for op in operations if isinstance(op, SegmentOp)]
    return [
        FlattenedSegment(attributes, own),
        *(instance for op in inner for instance in _flatten(op, f"{segment_name}/", used_names)),
    ]


def _unique_name(segment: SegmentOp, outer: str, used_names: set[str]) -> str:
    """Return a unique name for the segment, and add it to `used_names`. `outer`: the path of the enclosing segments."""
    name = segment.attributes.get(Names.SEGMENT)
    path = outer + (name.data if isinstance(name, StringAttr) else UNNAMED)
    number, segment_name = 0, path
    while segment_name in used_names:
        number += 1
        segment_name = f"{path}#{number}"
    used_names.add(segment_name)
    return segment_name


def _mark(function: FuncOp, instances: Sequence[FlattenedSegment]) -> None:
    step = Step.of(phases(function, structured=True) or _all_forward(function))
    for instance in instances:
        kept_results = set[SSAValue]()
        if not instance.is_kept and not instance.recomputes_outputs:
            kept_results = set(
                step.numbered.values_of(kept_results_of(step.graph, step.positions(instance.operations)))
            )
        for op in instance.operations:
            if explicit_mark(op) is not None:
                continue
            if any(result in kept_results for result in op.results):
                op.attributes[Names.CHECKPOINT] = UnitAttr()
            else:
                op.attributes[Names.RECOMPUTE] = instance.mark


def _all_forward(function: FuncOp) -> Phases:
    """Return phases for a function without a gradient, in which all operations but the terminator are forward."""
    order = Order.of(function.body.block)
    *operations, terminator = order.operations
    return Phases(order, dict.fromkeys(operations, Phase.PRIMAL) | {terminator: Phase.UPDATE})


@dataclass(frozen=True)
class InlineSegmentsPass(ModulePass):
    name = "recompute-inline-segments"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_segments(op)
