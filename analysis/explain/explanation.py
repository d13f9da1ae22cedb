"""Explain a step: its segments, its loops, its operations, and each value that is saved for the backward pass, with
its bytes, its readers and the reason. The data behind `-t explain{format=json}`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

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
from ..copies.loop_cuts import left_alone, loop_cut
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
DELAYS = frozenset({BARRIER, "recompute.token", "recompute.depend"})
SILENT = frozenset({"recompute.depend", "func.return"})


@dataclass(frozen=True)
class OperationCounts:
    """Numbers of operations by purpose; constants, delays and the terminator are not counted.

    `tokens`: what copies wait for, before and after lowering. Barriers of others are left out too.
    """

    forward: int
    gradient: int
    copies: int
    tokens: int
    update: int


@dataclass(frozen=True)
class SavedValue:
    """One forward value that the backward pass reads.

    `crosses`: other segments whose forward operations read it. `reason`: why it is saved; None if it is recomputed.
    `module` and `type`: as of `memory.labels.Buffer`.
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
    """Count the operations by purpose; copies and tokens are counted apart from the gradient operations between which
    they stand."""
    kinds = Counter(_kind(phases, op) for op in phases.order.operations)
    return OperationCounts(*(kinds[field.name] for field in fields(OperationCounts)))


def _kind(phases: Phases, op: Operation) -> str | None:
    """Return the field of `OperationCounts` that counts the operation."""
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
    served = set(step.numbered.values_of(replaced))
    return tuple(
        _saved_value(step, residual.value, decision_of, decided.resolved.saved, served, selection)
        for residual in residuals(phases)
    )


def _saved_value(
    step: Step,
    value: SSAValue,
    decision_of: Mapping[Operation, Decision],
    saved: frozenset[SSAValue],
    served: Iterable[SSAValue],
    selection: Selection,
) -> SavedValue:
    op = value.owner
    assert isinstance(op, Operation), "residuals are results of operations"
    decision = decision_of.get(op)
    segment = decision.segment if decision else ""
    readers = (reader for reader in step.phases.order.readers(value) if step.phases.is_forward(reader))
    read_by = dict.fromkeys(other.segment for reader in readers if (other := decision_of.get(reader)))
    return SavedValue(
        value=f"%{value.name_hint}" if value.name_hint else "",
        operation=name_of(op),
        position=position_of(op),
        segment=segment,
        bytes=value_bytes(value),
        crosses=tuple(name for name in read_by if name and name != segment),
        reason=None if value in served else _why_held(step, value, op, decision, saved, selection),
        module=module_of(op),
        type=type_text(value),
    )


def still_saved(phases: Phases, kept: Mapping[str, str]) -> tuple[SavedValue, ...]:
    """Return every forward value that the backward pass of a rewritten step reads, in program order.

    kept: The reasons of the segments that are not recomputed.
    """
    return tuple(_still_saved(phases, residual.value, kept) for residual in residuals(phases))


def _still_saved(phases: Phases, value: SSAValue, kept: Mapping[str, str]) -> SavedValue:
    op = value.owner
    assert isinstance(op, Operation), "residuals are results of operations"
    stated = op.attributes.get(Names.SEGMENT)
    segment = stated.data if isinstance(stated, StringAttr) else ""
    readers = [reader for reader in phases.order.readers(value) if not phases.is_forward(reader)]
    if all(is_copy(reader) or name_of(reader) in DELAYS for reader in readers):
        reason = START
    else:
        reason = kept.get(segment) or (READ_IN_SEGMENT if segment else READ)
    return SavedValue(
        value=f"%{value.name_hint}" if value.name_hint else "",
        operation=name_of(op),
        position=position_of(op),
        segment=segment,
        bytes=value_bytes(value),
        crosses=(),
        reason=reason,
        module=module_of(op),
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
    # A value that is read inside of a recomputed segment has a copy, so this value is not inside.
    return OUTPUT


@dataclass(frozen=True)
class LoopRow:
    """One loop, and the loop that reads its stacks, if there is one. `stack_bytes`: bytes of the stacks now;
    `kept_bytes`: bytes of the stacks after the cut; `again`: the number of operations that the cut repeats;
    `extra_flops`: their FLOPs over all iterations. `reason`: why the loop is not cut; None if the cut is worthwhile."""

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
    """Describe all loops of the function, from the outside in. Raises `UnknownPolicy`."""
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
            LoopRow(position_of(op), "", 0, 0, 0, 0, 0, 0, reason) for op, reason in left_alone(block, crossings)
        )
        pending.extend(_inside(block))
    return tuple(rows)


def _inside(block: Block) -> Iterator[Block]:
    return (inner for op in block.ops for region in op.regions for inner in region.blocks)


@dataclass(frozen=True)
class SegmentRow:
    """One segment instance. Bytes are of temporaries. `reason`: why the segment is not recomputed; None if recomputing
    is worthwhile."""

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

    `saved_bytes`: bytes of the forward values that the backward pass reads, in and outside of segments.
    `eager_peak_bytes`: the peak of an executor that starts operations as soon as they can run.
    `xla_peak_bytes`: temporaries under the memory model `xla`. `values`: the saved values.
    `loops`: the stacks that loops write for later loops. `cost`: the name of the cost; `step_cost` and `extra_cost` are
    in `cost_unit`, by default FLOPs.
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


def explain(function: FuncOp, phases: Phases, selection: Selection = AUTO, cost: str = FLOPS) -> Explanation:
    """Explain one function, which is inlined and has phases. Raises `BadSelection`, `BadCost` and `Refusal`."""
    reckoned = cost_named(cost)
    step = Step.of(phases, costs=reckoned.of)
    crossing = residuals(phases)
    shared = storages(phases.order)
    owners = dict.fromkeys(shared.of(residual.value) for residual in crossing)
    saved = {root: value_bytes(root) for root in owners if isinstance(root.owner, Operation)}
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
        cost=reckoned.name,
        cost_unit=reckoned.unit,
        step_cost=sum(step.graph.cost) / reckoned.scale,
        segments=tuple(
            _row(decision, by_segment.get(decision.segment, 0), step.graph, reckoned) for decision in decisions
        ),
        operations=count_operations(phases),
        values=saved_values(phases, decided, selection),
        loops=loop_rows(function, selection),
    )


def _row(decision: Decision, saved: int, graph: Graph, cost: Cost) -> SegmentRow:
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
