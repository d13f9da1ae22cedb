"""The explanation of a step: its segments, loops and operation counts, and each value saved for the backward pass with
its bytes, its readers and the reason.

This is the data that `-t explain{format=json}` prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...dialects.names import Names
from ...options.selection import AUTO, Selection
from ...planning.graph import Graph
from ...rules.costs.cost import FLOPS, Cost, cost_named
from ...rules.effects import is_constant
from ...rules.flops import flops
from ...support.diagnostics import position_of
from ...support.operations import name_of
from ..copies.copying import why_not_recomputable, why_stays
from ..copies.decide import Decision, Decisions, decide
from ..copies.loop_cuts import loop_cut, loops_left_uncut
from ..memory.timeline import Timeline, eager_timeline, module_of, timeline, type_text
from ..memory.xla.memory import xla_timeline
from ..request.in_loops import repeatable
from ..step.crossings import Crossings
from ..step.marks import is_copy, mark_of
from ..step.phases import Phases
from ..step.residuals import residuals
from ..step.step import Step
from ..step.views import storages, value_bytes

OUTSIDE = "it belongs to no segment"
MARKED = "it is marked to be kept"
CHOSEN = "the selection saves it: a checkpoint, the policy, save or exclude"
OUTPUT = "it is an output of its segment: operations after the segment read it"

START = "recomputation starts from it"
READ = "the backward pass reads it, and it belongs to no segment"
READ_IN_SEGMENT = "the backward pass reads it, and it is an output of its segment"

BARRIER = "stablehlo.optimization_barrier"
PASS_ON = frozenset({BARRIER, "sdy.sharding_constraint"})
"""Operations whose results are their operands, in order."""
DELAYS = frozenset({BARRIER, "recompute.token", "recompute.depend"})
SILENT = frozenset({"recompute.depend", "func.return"})


@dataclass(frozen=True)
class OperationCounts:
    """Numbers of operations by purpose; constants, delays and the terminator are not counted.

    `tokens` counts the tokens, or the barriers to which they are lowered, that copies wait for; other barriers are not
    counted.
    """

    forward: int
    gradient: int
    copies: int
    tokens: int
    update: int


@dataclass(frozen=True)
class SavedValue:
    """One forward value that the backward pass reads.

    Attributes:
        value: Its SSA name; "" without one.
        operation, position: Name and source position of the operation that computes it.
        segment: The segment that contains it; "" if there is none.
        bytes: Its size.
        crosses: The other segments whose forward operations read it.
        reason: The reason that it is saved; None if it is recomputed.
        module, type: See `memory.timeline.Buffer`.
    """

    value: str
    operation: str
    position: str
    segment: str
    bytes: int
    crosses: tuple[str, ...]
    reason: str | None
    module: str = ""
    type: str = ""


def count_operations(phases: Phases) -> OperationCounts:
    """Count the operations of a step by purpose.

    Copies and tokens have categories of their own, although they are between gradient operations.
    """
    kinds = Counter(_kind(phases, op) for op in phases.order.operations)
    return OperationCounts(*(kinds[field.name] for field in fields(OperationCounts)))


def _kind(phases: Phases, op: Operation) -> str | None:
    """Return the field of `OperationCounts` in which the operation is counted; None if it is not counted."""
    if is_constant(op) or name_of(op) in SILENT:
        return None
    if is_copy(op):
        return "copies"
    if name_of(op) == "recompute.token":
        return "tokens"
    if name_of(op) == BARRIER:
        readers = (reader for result in op.results for reader in phases.order.readers(result))
        return "tokens" if any(is_copy(reader) for reader in readers) else None
    return "forward" if phases.is_forward(op) else phases.phase[op]


def saved_values(phases: Phases, decided: Decisions, selection: Selection) -> tuple[SavedValue, ...]:
    """Return every forward value that the backward pass reads, in program order."""
    step = decided.step
    decision_of = {op: decision for decision in decided.decisions for op in decision.operations}
    replaced = {value for d in decided.decisions if d.recomputed for group in d.groups for value in group.replaces}
    recomputed = set(step.numbered.values_of(replaced))
    return tuple(
        _saved_value(step, residual.value, decision_of, decided.resolved.saved, recomputed, selection)
        for residual in residuals(phases)
    )


def _saved_value(
    step: Step,
    value: SSAValue,
    decision_of: Mapping[Operation, Decision],
    saved: frozenset[SSAValue],
    recomputed: Iterable[SSAValue],
    selection: Selection,
) -> SavedValue:
    op = value.owner
    assert isinstance(op, Operation), "residuals are results of operations"
    made_by = _maker(value, op)
    decision = decision_of.get(op)
    segment = decision.segment if decision else ""
    readers = (reader for reader in step.phases.order.readers(value) if step.phases.is_forward(reader))
    read_by = dict.fromkeys(other.segment for reader in readers if (other := decision_of.get(reader)))
    return SavedValue(
        value=f"%{value.name_hint}" if value.name_hint else "",
        operation=name_of(made_by),
        position=position_of(made_by),
        segment=segment,
        bytes=value_bytes(value),
        crosses=tuple(name for name in read_by if name and name != segment),
        reason=None if value in recomputed else _why_held(step, value, op, decision, saved, selection),
        module=module_of(made_by),
        type=type_text(value),
    )


def still_saved(phases: Phases, kept: Mapping[str, str]) -> tuple[SavedValue, ...]:
    """Return every forward value that the backward pass of a rewritten step still reads, in program order.

    `kept`: for each segment that is not recomputed, the reason.
    """
    return tuple(_still_saved(phases, residual.value, kept) for residual in residuals(phases))


def _maker(value: SSAValue, op: Operation) -> Operation:
    """Return the operation that computes a value: behind barriers and sharding constraints, which only pass it on.

    `op`: the operation whose result it is; returned if an argument of the step is behind it."""
    while isinstance(value, OpResult) and name_of(op) in PASS_ON:
        value = op.operands[value.index]
        if not isinstance(value.owner, Operation):
            return op
        op = value.owner
    return op


def _still_saved(phases: Phases, value: SSAValue, kept: Mapping[str, str]) -> SavedValue:
    op = value.owner
    assert isinstance(op, Operation), "residuals are results of operations"
    made_by = _maker(value, op)
    stated = op.attributes.get(Names.SEGMENT)
    segment = stated.data if isinstance(stated, StringAttr) else ""
    readers = [reader for reader in phases.order.readers(value) if not phases.is_forward(reader)]
    if all(is_copy(reader) or name_of(reader) in DELAYS for reader in readers):
        reason = START
    else:
        reason = kept.get(segment) or (READ_IN_SEGMENT if segment else READ)
    return SavedValue(
        value=f"%{value.name_hint}" if value.name_hint else "",
        operation=name_of(made_by),
        position=position_of(made_by),
        segment=segment,
        bytes=value_bytes(value),
        crosses=(),
        reason=reason,
        module=module_of(made_by),
        type=type_text(value),
    )


def _why_held(
    step: Step,
    value: SSAValue,
    op: Operation,
    decision: Decision | None,
    saved: frozenset[SSAValue],
    selection: Selection,
) -> str:
    mark = mark_of(value)
    if mark is not None and not mark.recomputes:
        return MARKED
    if (refused := why_not_recomputable(step, op, selection.permission)) is not None:
        return refused
    if (stays := why_stays(step, value)) is not None:
        return stays
    if decision is None:
        return OUTSIDE
    if value in saved:
        return CHOSEN
    if decision.reason is not None:
        return decision.reason
    # A value that is read inside a recomputed segment has a copy, so this value is not inside.
    return OUTPUT


@dataclass(frozen=True)
class LoopRow:
    """One loop and, if there is one, the loop that reads its stacks.

    Attributes:
        position, reader: Source positions of the two loops.
        trips: The trip count.
        stacks: The number of stacks that the second loop reads.
        stack_bytes, kept_bytes: Bytes of these stacks before and after the cut.
        again: The number of operations that the cut repeats.
        extra_flops: FLOPs of these operations over all iterations.
        reason: The reason that the loop is not cut; None if the cut is worthwhile.
    """

    position: str
    reader: str
    trips: int
    stacks: int
    stack_bytes: int
    kept_bytes: int
    again: int
    extra_flops: int
    reason: str | None


def loop_rows(function: FuncOp, selection: Selection) -> tuple[LoopRow, ...]:
    """Describe all loops of the function, outer loops before inner ones.

    Raises:
        UnknownPolicy: The selection names a policy that does not exist.
    """
    may_repeat, pending, rows = repeatable(function, selection), [function.body.block], list[LoopRow]()
    crossings = Crossings(function.body.block)
    while pending:
        block = pending.pop()
        for link in crossings.links_of(block):
            cut = loop_cut(link, may_repeat)
            rows.append(
                LoopRow(
                    position=position_of(link.writer.op),
                    reader=position_of(link.reader.op),
                    trips=link.writer.trips,
                    stacks=len(link.stacks),
                    stack_bytes=sum(stack.bytes for stack in link.stacks),
                    kept_bytes=cut.kept_bytes,
                    again=len(cut.again),
                    extra_flops=cut.extra_flops,
                    reason=cut.why_not,
                )
            )
        rows.extend(
            LoopRow(position_of(op), "", 0, 0, 0, 0, 0, 0, reason) for op, reason in loops_left_uncut(block, crossings)
        )
        pending.extend(_inner_blocks(block))
    return tuple(rows)


def _inner_blocks(block: Block) -> Iterator[Block]:
    return (inner for op in block.ops for region in op.regions for inner in region.blocks)


@dataclass(frozen=True)
class SegmentRow:
    """One segment instance and the effect of recomputing it.

    Attributes:
        segment, position: The name, and the source position of the first operation.
        operations: The number of operations.
        saved_bytes: Bytes of the forward values that the segment saves for the backward pass.
        copies, tokens, gates: The numbers of copies, tokens and gates that recomputation needs.
        freed_bytes, pinned_bytes: Bytes of temporaries that recomputation frees, and that it keeps alive instead.
        extra_flops, extra_cost: The additional work, in FLOPs and in the unit of the cost model.
        reason: The reason that the segment is not recomputed; None if it is.
    """

    segment: str
    position: str
    operations: int
    saved_bytes: int
    copies: int
    tokens: int
    gates: int
    freed_bytes: int
    pinned_bytes: int
    extra_flops: int
    extra_cost: float
    reason: str | None


@dataclass(frozen=True)
class Explanation:
    """The explanation of one step.

    Attributes:
        function: The name of the function.
        timeline: The live bytes at each operation, in program order.
        eager_peak_bytes: The peak of an executor that starts each operation as soon as its operands exist.
        xla_peak_bytes: The peak of temporaries under the memory model `xla`.
        residuals: The number of saved values.
        saved_bytes: Bytes of the forward values that the backward pass reads, in and outside segments.
        saved_outside_bytes: The part of `saved_bytes` outside segments.
        step_flops: The FLOPs of the step.
        cost: The name of the cost model.
        cost_unit: The unit of `step_cost` and of the `extra_cost` of segments, by default FLOPs.
        step_cost: The cost of the step by the cost model.
        segments: The segments, each with its memory and its extra work.
        operations: The numbers of operations by category.
        values: The saved values.
        loops: The loops that write stacks for later loops.
        measured_bytes: The temporaries of the plain step as the compiler reports them; None if it was not compiled.
    """

    function: str
    timeline: Timeline = field(repr=False)
    eager_peak_bytes: int
    xla_peak_bytes: int
    residuals: int
    saved_bytes: int
    saved_outside_bytes: int
    step_flops: int
    cost: str
    cost_unit: str
    step_cost: float
    segments: tuple[SegmentRow, ...] = field(repr=False)
    operations: OperationCounts
    values: tuple[SavedValue, ...] = field(repr=False)
    loops: tuple[LoopRow, ...] = field(default=(), repr=False)
    measured_bytes: int | None = None


def explain(function: FuncOp, phases: Phases, selection: Selection = AUTO, cost: str = FLOPS) -> Explanation:
    """Explain one function, which must be inlined and have phases.

    Args:
        function: The function.
        phases: The phases of its operations.
        selection: The user's selection.
        cost: The name of a cost model.

    Raises:
        BadSelection: The selection does not fit the function.
        BadCost: No cost model has this name.
        Refusal: The function has dynamic shapes.
    """
    cost_model = cost_named(cost)
    step = Step.of(phases, costs=cost_model.of)
    crossing = residuals(phases)
    shared = storages(phases.order)
    saved_storages = dict.fromkeys(shared.of(residual.value) for residual in crossing)
    saved = {root: value_bytes(root) for root in saved_storages if isinstance(root.owner, Operation)}
    decided = decide(step, selection)
    decisions = decided.decisions
    segment_of = {op: decision.segment for decision in decisions for op in decision.operations}
    by_segment = dict[str, int]()
    for root, size in saved.items():
        assert isinstance(root.owner, Operation), "arguments were left out above"
        segment = segment_of.get(root.owner, "")
        by_segment[segment] = by_segment.get(segment, 0) + size
    return Explanation(
        function=function.sym_name.data,
        timeline=timeline(function, phases),
        eager_peak_bytes=eager_timeline(function, phases).peak_bytes,
        xla_peak_bytes=xla_timeline(function, phases).peak_bytes,
        residuals=len(crossing),
        saved_bytes=sum(saved.values()),
        saved_outside_bytes=by_segment.get("", 0),
        step_flops=sum(flops(op) for op in phases.order.operations),
        cost=cost_model.name,
        cost_unit=cost_model.unit,
        step_cost=sum(step.graph.cost) / cost_model.scale,
        segments=tuple(
            _segment_row(decision, by_segment.get(decision.segment, 0), step.graph, cost_model)
            for decision in decisions
        ),
        operations=count_operations(phases),
        values=saved_values(phases, decided, selection),
        loops=loop_rows(function, selection),
    )


def _segment_row(decision: Decision, saved: int, graph: Graph, cost: Cost) -> SegmentRow:
    groups = decision.groups
    return SegmentRow(
        segment=decision.segment,
        position=position_of(decision.first),
        operations=len(decision.operations),
        saved_bytes=saved,
        copies=sum(len(group.operations) for group in groups),
        tokens=sum(len(group.batches) for group in groups),
        gates=sum(len(group.gates) for group in groups),
        freed_bytes=sum(group.freed_bytes for group in groups),
        pinned_bytes=sum(group.pinned_bytes for group in groups),
        extra_flops=sum(group.extra_flops for group in groups),
        extra_cost=sum(graph.cost[op] for group in groups for op in group.operations) / cost.scale,
        reason=decision.reason,
    )
