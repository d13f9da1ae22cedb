"""The explanation of a step: its segments, loops and operation counts, and each value saved for the backward pass.

This is the data that `-t explain{format=json}` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...options.selection import AUTO, Selection
from ...planning.by_segment.skip_reasons import FREES_NOTHING, NOTHING_FREED
from ...rules.costs.cost import FLOPS, Cost, cost_named
from ...support.diagnostics import position_of
from ..copies.segment_decisions import Decision, SegmentDecisions, segment_decisions
from ..memory.timeline import Timeline, eager_timeline, timeline
from ..memory.xla.memory import xla_timeline
from ..step.descriptions import segment_names
from ..step.phases import Phases
from ..step.residuals import residuals
from ..step.step import Step
from ..step.views import storages, value_bytes
from .executed_flops import executed_flops
from .loop_rows import LoopRow, explain_loops
from .operation_counts import OperationCounts, count_operations
from .saved_values import SavedValue, saved_values

BY_ITERATION = "the loop at {position} is recomputed instead, iteration by iteration, as the table of loops shows"


@dataclass(frozen=True)
class SegmentRow:
    """A segment instance and the effect of recomputing it.

    Attributes:
        segment, position: The name of the segment in the module, and the source position of its first operation.
        name: The name by which the user can find the segment in the model.
        operations: The number of operations.
        saved_bytes: Bytes of the forward values that the segment saves for the backward pass.
        copies, tokens, gates: The numbers of copies, tokens and gates that recomputation needs.
        freed_bytes, pinned_bytes: Bytes of temporaries that recomputation frees, and bytes that it keeps alive instead.
        extra_flops, extra_cost: The additional work, in FLOPs and in the unit of the cost model.
        reason: The reason that the segment is not recomputed; None if it is recomputed.
    """

    segment: str
    position: str
    name: str
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
        saved_bytes: Bytes of the forward values that the backward pass reads, inside and outside segments.
        saved_outside_bytes: The part of `saved_bytes` outside segments.
        step_flops: The FLOPs of the step, over all iterations of its loops.
        cost: The name of the cost model.
        cost_unit: The unit of `step_cost` and of the `extra_cost` of segments, by default FLOPs.
        step_cost: The cost of the step according to the cost model; for FLOPs, the same as `step_flops`.
        segments: The segments, each with its memory and its extra work.
        operations: The numbers of operations by purpose.
        values: The saved values.
        loops: The loops that write stacks for later loops.
        measured_bytes: The temporaries of the plain step as the compiler reports them; None if it was not compiled.
        place: The location of a step that is only a part of the function, such as `inside the loop at train.py:17:12`;
            "" if the step is the whole function.
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
    place: str = ""


ChooseDecisions = Callable[[FuncOp, Step], tuple[SegmentDecisions, str | None]]
"""A function that returns the decisions that a rewrite of a step chooses. It also returns the reason that the rewrite
leaves the step unchanged, or None if it changes the step."""


def explain(
    function: FuncOp,
    phases: Phases,
    selection: Selection = AUTO,
    cost: str = FLOPS,
    choose: ChooseDecisions | None = None,
) -> Explanation:
    """Explain one function, which must be inlined and have phases.

    The rows describe the segments that scopes name. If `choose` is given and no named segment is worth recomputing,
    they describe the segments of the choice instead. If the choice leaves the step unchanged, they give its reason.

    Args:
        function: The function.
        phases: The phases of its operations.
        selection: The user's selection.
        cost: The name of a cost model.
        choose: The function that chooses the decisions of a rewrite.

    Raises:
        BadSelection: The selection does not apply to the function.
        BadCost: No cost model has this name.
        Refusal: The function has dynamic shapes.
    """
    cost_model = cost_named(cost)
    step = Step.of(phases, costs=cost_model.of)
    executed = tuple(map(executed_flops, step.numbered.operations))
    costs = executed if cost_model.is_default else step.graph.cost
    loops = explain_loops(function, selection)
    decided = segment_decisions(step, selection)
    if choose is not None and not loops.cut:
        decided = _consistent_with_choice(decided, *choose(function, step))
    decisions = decided.decisions
    saved = _SavedBytes.of(phases, decisions)
    names = segment_names((decision.segment, decision.operations) for decision in decisions)
    after_cuts = map(partial(_decision_after_cuts, step, loops.cut), decisions)
    return Explanation(
        function=function.sym_name.data,
        timeline=timeline(function, phases),
        eager_peak_bytes=eager_timeline(function, phases).peak_bytes,
        xla_peak_bytes=xla_timeline(function, phases).peak_bytes,
        residuals=len(residuals(phases)),
        saved_bytes=saved.total,
        saved_outside_bytes=saved.outside,
        step_flops=sum(executed),
        cost=cost_model.name,
        cost_unit=cost_model.unit,
        step_cost=sum(costs) / cost_model.scale,
        segments=tuple(
            _segment_row(decision, name, saved=size, executed=executed, costs=costs, cost=cost_model)
            for decision, name, size in zip(after_cuts, names, saved.by_decision, strict=True)
        ),
        operations=count_operations(phases),
        values=saved_values(phases, decided, selection),
        loops=loops.rows,
    )


@dataclass(frozen=True)
class _SavedBytes:
    """The bytes of the storages that a step saves for its backward pass.

    Attributes:
        total: The bytes of all saved storages.
        outside: The bytes of storages that operations outside every segment make.
        by_decision: For each decision, the bytes of storages that its operations make.
    """

    total: int
    outside: int
    by_decision: tuple[int, ...]

    @classmethod
    def of(cls, phases: Phases, decisions: Sequence[Decision]) -> _SavedBytes:
        """Return the sums of the bytes of saved storages, without the arguments of the step."""
        shared = storages(phases.order)
        saved_storages = dict.fromkeys(shared.owner(residual.value) for residual in residuals(phases))
        # Operations outside segments have decisions of their own, without a name.
        number_of = {op: number for number, decision in enumerate(decisions) for op in decision.operations}
        by_decision, total, outside = [0] * len(decisions), 0, 0
        for root in saved_storages:
            if not isinstance(root.owner, Operation):
                continue
            size = value_bytes(root)
            total += size
            number = number_of.get(root.owner)
            if number is not None:
                by_decision[number] += size
            if number is None or not decisions[number].segment:
                outside += size
        return cls(total, outside, tuple(by_decision))


def _consistent_with_choice(
    named: SegmentDecisions, chosen: SegmentDecisions, why_unchanged: str | None
) -> SegmentDecisions:
    """Return the decisions on named segments. If they contradict the chosen decisions, return the chosen ones.

    Args:
        named: The decisions on named segments.
        chosen: The chosen decisions. They are returned if no named segment is recomputed.
        why_unchanged: The reason that the rewrite leaves the step unchanged; None if it changes the step.
    """
    if why_unchanged is not None:
        decisions = [replace(each, reason=why_unchanged) if each.recomputed else each for each in named.decisions]
        return replace(named, decisions=tuple(decisions))
    return named if any(decision.recomputed for decision in named.decisions) else chosen


def _decision_after_cuts(step: Step, cut_loops: Mapping[Operation, str], decision: Decision) -> Decision:
    """Return the decision for a segment after the loops are cut.

    If the cut of a loop is worthwhile, the loop that reads its stacks repeats the operations. So a segment that would
    copy the whole loop copies nothing. The cut is also given as the reason if the segment contains the loop and its
    copies would free nothing.
    """
    frees_nothing = decision.reason in (*FREES_NOTHING, NOTHING_FREED)
    if decision.reason is not None and not frees_nothing:
        return decision
    copied = step.numbered.operations_of([op for group in decision.groups for op in group.operations])
    replaced = [*copied, *(decision.operations if frees_nothing else ())]
    cut = next((cut_loops[op] for op in replaced if op in cut_loops), None)
    if cut is None:
        return decision
    return replace(decision, groups=(), reason=BY_ITERATION.format(position=cut))


def _segment_row(
    decision: Decision, name: str, saved: int, executed: Sequence[int], costs: Sequence[int], cost: Cost
) -> SegmentRow:
    """Return the row that describes a decision.

    Args:
        decision: The decision.
        name: The name by which the user can find the segment in the model.
        saved: The bytes of the forward values that the segment saves.
        executed: The FLOPs of each operation of the step, over all iterations of its loops.
        costs: The cost of each operation.
        cost: The cost model.
    """
    groups = decision.groups
    copied = [op for group in groups for op in group.operations]
    return SegmentRow(
        segment=decision.segment,
        position=position_of(decision.first),
        name=name,
        operations=len(decision.operations),
        saved_bytes=saved,
        copies=sum(len(group.operations) for group in groups),
        tokens=sum(len(group.batches) for group in groups),
        gates=sum(len(group.gates) for group in groups),
        freed_bytes=sum(group.freed_bytes for group in groups),
        pinned_bytes=sum(group.pinned_bytes for group in groups),
        extra_flops=sum([executed[op] for op in copied]),
        extra_cost=sum([costs[op] for op in copied]) / cost.scale,
        reason=decision.reason,
    )
