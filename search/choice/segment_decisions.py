"""Decide for each segment whether to recompute the values inside it, or to skip it for a stated reason.

If a scope of the model is entered several times, each entry is a separate segment *instance*. The decisions follow from
the selection by fixed rules: a segment is skipped if its copies would free no memory. Marking and explaining both use
these decisions, so that they always agree.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...analysis.copies.copying import CloneOptions
from ...analysis.copies.decisions import Decision, SegmentDecisions
from ...analysis.copies.segment_outputs import is_live_after_backward, kept_outputs
from ...analysis.request.resolved import ResolvedSelection, resolve
from ...analysis.request.segments import instance_name, segments_of_gradients
from ...analysis.step.marks import is_forced, mark_of
from ...analysis.step.step import Step
from ...dialects.mark_kind import MarkKind
from ...dialects.names import Names
from ...options.selection import Selection
from ...planning.by_segment.by_structure import Cuts
from ...planning.by_segment.copy_groups import GroupOptions
from ...planning.by_segment.plan_targets import Targets
from ...planning.by_segment.sinkable import sinkable_groups
from ...planning.plan import Plan
from ...planning.skip_reason import SkipReason
from ...support.timing import part
from ...support.units import readable_bytes


@dataclass(frozen=True)
class Segmentation:
    """The segments of a step, and the treatment of their outputs.

    Attributes:
        cuts: The cuts between segments that the graph's structure suggests; None for named segments.
        own_outputs: Whether to recompute the outputs of a segment for the segment's own gradient, and keep them for all
            other readers. Gradients between cuts have no names, so there the outputs are recomputed only for the copies
            of the segment itself.
    """

    cuts: Cuts | None = None
    own_outputs: bool = False


NAMED_SEGMENTS = Segmentation()


@part("decide")
def segment_decisions(
    step: Step,
    selection: Selection,
    segmentation: Segmentation = NAMED_SEGMENTS,
    named: Mapping[Operation, str] | None = None,
    splits_into_batches: bool = True,
) -> SegmentDecisions:
    """Return the decisions of a step: the values to recompute in each segment instance, and outside segments.

    Args:
        step: The step.
        selection: The user's selection.
        segmentation: The segments, and the treatment of their outputs.
        named: The operations' named segments, if they are already computed. They are ignored if the segmentation has
            cuts.
        splits_into_batches: As in `GroupOptions`.

    Raises:
        BadSelection: The selection does not apply to the step.
    """
    resolved = resolve(step.phases, selection, _segments_of_cuts(step, segmentation.cuts) or named)
    scopes = None
    if segmentation.own_outputs:
        scopes = _gradient_scopes(step, selection) if segmentation.cuts is None else {}
    analysis = _SegmentAnalysis(step, selection, splits_into_batches, scopes)
    decisions = [
        Decision(segment=segment, operations=operations, values=frozenset(), groups=(), reason=SkipReason.SKIPPED)
        if segment in resolved.skipped
        else analysis.decision(segment, operations, resolved.saved)
        for segment, operations in resolved.members.items()
    ]
    return SegmentDecisions(step, (*decisions, *_decisions_outside_segments(step, resolved, analysis)), resolved)


def _segments_of_cuts(step: Step, cuts: Cuts | None) -> Mapping[Operation, str] | None:
    if cuts is None:
        return None
    return {step.operation(op): segment for op, segment in cuts.segments(step.graph).items()}


def _gradient_scopes(step: Step, selection: Selection) -> dict[int, str]:
    scopes = segments_of_gradients(step.phases, selection.segments)
    return {step.position(op): scope for op, scope in scopes.items()}


def _decisions_outside_segments(step: Step, resolved: ResolvedSelection, analysis: _SegmentAnalysis) -> list[Decision]:
    """Return the decisions on marked operations outside segments, and on operations to sink into the backward
    pass."""
    excluded = {op for operations in resolved.members.values() for op in operations}
    outside = [op for op in step.phases.order.operations if op not in excluded and step.phases.is_forward(op)]
    preferred = [op for op in outside if any(mark_of(result) is MarkKind.PREFER_RECOMPUTE for result in op.results)]
    marked = [analysis.decision("", preferred, outputs=True)] if preferred else []
    if analysis.selection.segments == "none":
        return marked
    excluded.update(op for op in outside if Names.RECOMPUTE in op.attributes)
    groups = (
        step.numbered.operations_of(numbers) for numbers in sinkable_groups(step.graph, set(step.positions(excluded)))
    )
    sunk = (analysis.decision("", group, outputs=False) for group in groups)
    return [*marked, *(decision for decision in sunk if decision.recomputed)]


@dataclass(frozen=True)
class _SegmentAnalysis:
    """Derives the decisions for the segments of one step.

    `scopes`: for each gradient operation, the name of the segment whose gradient it computes; None to keep the outputs
    of segments for all readers.
    """

    step: Step
    selection: Selection
    splits_into_batches: bool
    scopes: Mapping[int, str] | None

    def decision(
        self,
        segment: str,
        operations: Sequence[Operation],
        saved: frozenset[SSAValue] = frozenset(),
        outputs: bool | None = None,
    ) -> Decision:
        """Return the decision for one segment.

        `outputs`: whether to recompute the outputs of the segment as well; None to follow the selection's option
        `outputs`.
        """
        step, graph = self.step, self.step.graph
        outputs = self.selection.outputs if outputs is None else outputs
        members = step.positions(operations)
        kept_values = {step.number(value) for value in saved if value in step.numbered.number}
        to_save = frozenset(kept_values)
        live_out = set[int]() if outputs else kept_outputs(graph, members)
        marked = {number for number, op in zip(members, operations, strict=True) if Names.RECOMPUTE in op.attributes}
        own = self._outputs_for_own_gradient(segment, members, live_out - kept_values, marked)
        kept_values |= live_out - own.keys()
        kept_values |= {value for value in graph.results_of(members) if is_live_after_backward(graph, value)}
        values = frozenset(
            value
            for op in members
            for value in graph.makes[op]
            if _is_target(step, value, value not in kept_values, op in marked)
        )
        # Each segment is planned alone, since the start of the next segment is not known here.
        grouping = GroupOptions(
            splits_into_batches=self.splits_into_batches,
            holds_joining_cotangents=False,
        )
        copying = CloneOptions(grouping, permission=self.selection.permission)
        plan = copying.plan(step, Targets(dict.fromkeys(members, segment), values, own))
        is_marked = any(map(is_forced, operations))
        targets = frozenset(step.numbered.values_of(values))
        own_outputs = {step.value(value): readers for value, readers in own.items() if value in values}
        return Decision(
            segment=segment,
            operations=tuple(operations),
            values=targets,
            groups=plan.groups,
            reason=None
            if plan.groups and is_marked
            else _why_not(plan, outputs and bool(segment), self._why_all_kept(members, to_save, marked)),
            own_gradient_readers=own_outputs,
        )

    def _why_all_kept(self, members: Sequence[int], to_save: Set[int], marked: Container[int]) -> str:
        """Return the reason that all values of a segment are kept. `to_save`: the values that the policy saves."""
        makes = self.step.graph.makes
        requested = [op in marked or value in to_save for op in members for value in makes[op]]
        if not any(requested):
            return SkipReason.ALL_OUTPUTS
        return SkipReason.ALL_TO_SAVE if all(requested) else SkipReason.ALL_KEPT

    def _outputs_for_own_gradient(
        self, segment: str, members: Sequence[int], live_out: Iterable[int], marked: Container[int]
    ) -> dict[int, frozenset[int]]:
        """Return the segment outputs that the segment's own gradient reads, each with its readers in that gradient.

        The result is empty without `scopes`. Readers are matched by scope rather than by dependence, because an
        operation between two segments belongs to neither.
        """
        if self.scopes is None:
            return {}
        graph = self.step.graph
        inside = set(members)
        scope = instance_name(segment)
        own_readers = dict[int, frozenset[int]]()
        for value in live_out:
            own = [
                reader
                for reader in graph.readers[value]
                if (graph.gradient[reader] and self.scopes.get(reader) == scope) or reader in inside
            ]
            if own and graph.maker[value] not in marked:
                own_readers[value] = frozenset(own)
        return own_readers


def _is_target(step: Step, value: int, by_policy: bool, marked: bool) -> bool:
    """Return whether the value is to be recomputed. A mark on the operation takes precedence over the policy."""
    mark = mark_of(step.value(value)) if marked else None
    return by_policy if mark is None else mark.recomputes


def _why_not(plan: Plan, demanded: bool, all_kept: str) -> str | None:
    """Return the reason that a segment is not recomputed; None if it is recomputed.

    Args:
        plan: The plan of the segment.
        demanded: Whether to recompute it even if that frees no memory.
        all_kept: The reason for a plan without values.
    """
    # If the gradient needs the first values immediately, this is the last segment: all copies would be live together.
    if any(entry.reason is SkipReason.NO_GATE for entry in plan.kept):
        return SkipReason.NO_GATE
    if not plan.groups:
        return plan.kept[0].reason if plan.kept else all_kept
    freed, pinned = (sum(sizes) for sizes in zip(*((g.freed_bytes, g.pinned_bytes) for g in plan.groups), strict=True))
    if freed == pinned == 0 and not demanded:
        return SkipReason.NOTHING_FREED
    if freed <= pinned and not demanded:
        cost = f"keeps {readable_bytes(pinned)} alive in their place"
        return f"no memory would be freed on balance: recomputing frees {readable_bytes(freed)} and {cost}"
    return None
