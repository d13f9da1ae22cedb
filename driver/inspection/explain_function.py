"""Explain which segments and loops of a function a rewrite recomputes, for what reason, and which values it saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...analysis.copies.decisions import Decision, SegmentDecisions
from ...analysis.explain.executed_flops import executed_flops
from ...analysis.explain.explanation import Explanation, SegmentRow
from ...analysis.explain.loop_rows import explain_loops
from ...analysis.explain.operation_counts import count_operations
from ...analysis.explain.saved_values import saved_values
from ...analysis.memory.timeline import eager_timeline, timeline
from ...analysis.memory.xla.memory import xla_timeline
from ...analysis.request.in_loops import repetition_predicate
from ...analysis.step.descriptions import segment_names
from ...analysis.step.phases import Phases
from ...analysis.step.residuals import residuals
from ...analysis.step.step import Step
from ...analysis.step.views import storages, value_bytes
from ...options.recompute_options import RecomputeOptions
from ...options.selection import AUTO, Selection
from ...planning.skip_reason import SkipReason, frees_nothing
from ...rules.costs.cost import FLOPS, Cost, cost_named
from ...search.choice.choose import ChosenAttempt, choose_for
from ...search.choice.segment_decisions import segment_decisions
from ...search.local_choices.min_loop_cut import loop_cut
from ...support.diagnostics import position_of

BY_ITERATION = "the loop at {position} is recomputed instead, iteration by iteration, as the table of loops shows"


def explain(
    function: FuncOp,
    phases: Phases,
    selection: Selection = AUTO,
    cost: str = FLOPS,
    options: RecomputeOptions | None = None,
) -> Explanation:
    """Explain one function, which must be inlined and have phases.

    The rows describe the segments that scopes name. If `options` are given and no named segment is worth recomputing,
    the rows describe instead the segments that a rewrite with these options chooses. If this rewrite leaves the step
    unchanged, the rows give the reason.

    Args:
        function: The function.
        phases: The phases of its operations.
        selection: The user's selection.
        cost: The name of a cost model.
        options: The options of a rewrite whose choice the explanation must describe; None for no rewrite.

    Raises:
        BadSelection: The selection does not apply to the function.
        BadCost: No cost model has this name.
        Refusal: The function has dynamic shapes.
    """
    cost_model = cost_named(cost)
    step = Step.of(phases, costs=cost_model.of)
    executed = tuple(map(executed_flops, step.numbered.operations))
    costs = executed if cost_model.is_default else step.graph.cost
    loops = explain_loops(function, partial(loop_cut, may_repeat=repetition_predicate(function, selection)))
    decided = segment_decisions(step, selection)
    if options is not None and not loops.cut:
        decided = _consistent_with_choice(decided, choose_for(function, step, options))
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
        outside: The bytes of storages that are created by operations outside all segments.
        by_decision: For each decision, the bytes of storages that are created by its operations.
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


def _consistent_with_choice(named: SegmentDecisions, choice: ChosenAttempt) -> SegmentDecisions:
    """Return the decisions on named segments. If they contradict the choice of a rewrite, return the decisions of the
    choice.

    Args:
        named: The decisions on named segments.
        choice: The choice. Its decisions are returned if no named segment is recomputed. If the choice leaves the step
            unchanged, the decision on every segment gives the reason for that.
    """
    if choice.refused is not None:
        decisions = [replace(each, reason=choice.refused) if each.recomputed else each for each in named.decisions]
        return replace(named, decisions=tuple(decisions))
    return named if any(decision.recomputed for decision in named.decisions) else choice.chosen.planned.decided


def _decision_after_cuts(step: Step, cut_loops: Mapping[Operation, str], decision: Decision) -> Decision:
    """Return the decision for a segment after the loops are cut.

    If cutting a loop is worthwhile, the operations of its body are repeated in the loop that reads its stacks.
    Therefore a segment that would copy the whole loop copies nothing. If a segment contains the loop and its copies
    would free nothing, the cut is the stated reason for this as well.
    """
    is_futile = frees_nothing(decision.reason) or decision.reason is SkipReason.NOTHING_FREED
    if decision.reason is not None and not is_futile:
        return decision
    copied = step.numbered.operations_of([op for group in decision.groups for op in group.operations])
    replaced = [*copied, *(decision.operations if is_futile else ())]
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
