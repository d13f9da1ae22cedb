"""Plan the attempts at a step: decide which segments to recompute, derive the values to recompute, and plan the copies
of these values. The IR stays unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import Operation

from ...analysis.copies.copying import CloneOptions, refused_marks, targets_of_marks, with_dependent_targets
from ...analysis.copies.decided_marks import DecidedMark, MarkSource, decided_marks
from ...analysis.copies.decisions import SegmentDecisions
from ...analysis.step.marks import ChosenMark
from ...analysis.step.step import Step
from ...options.selection import Selection
from ...planning.by_segment.copy_groups import GroupOptions
from ...planning.by_segment.each_pass import repeat_in_each_pass
from ...planning.by_segment.plan_targets import Targets
from ...planning.plan import Plan
from ...support.timing import part
from .attempts import Attempt
from .segment_decisions import NAMED_SEGMENTS, Segmentation, segment_decisions


@dataclass(frozen=True)
class PlannedAttempt:
    """An attempt with its decisions and its plan."""

    attempt: Attempt
    decided: SegmentDecisions
    plan: Plan

    @cached_property
    def segments(self) -> Mapping[int, str]:
        """For each operation in a recomputed segment, the name of the segment, in program order."""
        position = self.decided.step.position
        recomputed = [decision for decision in self.decided.decisions if decision.recomputed and decision.segment]
        segment_of = {position(op): decision.segment for decision in recomputed for op in decision.operations}
        return dict(sorted(segment_of.items()))

    def in_each_pass(self) -> PlannedAttempt:
        """Return this attempt with a plan that also repeats the copies in each backward pass. The plan is the same
        object if the backward pass enters most segments only once."""
        plan = repeat_in_each_pass(self.decided.step.graph, self.plan)
        return replace(self, attempt=replace(self.attempt, each_pass=True), plan=plan)


@dataclass(frozen=True)
class AttemptTargets:
    """The decisions on the segments of an attempt, and the values to recompute according to these decisions. Attempts
    that differ only in how they copy their segments share one object."""

    decided: SegmentDecisions
    targets: Targets

    @classmethod
    @part("plan")
    def of(
        cls,
        step: Step,
        selection: Selection,
        segmentation: Segmentation = NAMED_SEGMENTS,
        named: Mapping[Operation, str] | None = None,
    ) -> AttemptTargets:
        """Decide which values of a step are recomputed.

        Args:
            named: The named segments, if they are already computed.

        Raises:
            BadSelection: If the selection does not apply to the step.
        """
        decided = segment_decisions(step, selection, segmentation, named, splits_into_batches=False)
        unrepeatable = frozenset(op for op, _ in refused_marks(step, selection.permission))
        targets, marked = _targets_of_decisions(step, decided, unrepeatable)
        return cls(decided, with_dependent_targets(step, targets, marked))


@part("plan")
def plan_attempt(
    step: Step, selection: Selection, attempt: Attempt, targets: AttemptTargets, copies: int = 2
) -> PlannedAttempt:
    """Plan an attempt.

    Args:
        targets: The targets for the segmentation and the policy of the attempt.
        copies: The maximum number of copies of one operation.
    """
    grouping = GroupOptions(copies, chain=attempt.chain, splits_only_concurrent=attempt.splits_only_concurrent)
    options = CloneOptions(grouping, selection.permission)
    planned = PlannedAttempt(attempt, targets.decided, options.plan(step, targets.targets))
    return planned.in_each_pass() if attempt.each_pass else planned


def _targets_of_decisions(
    step: Step, decided: SegmentDecisions, unrepeatable: Set[Operation]
) -> tuple[Targets, frozenset[int]]:
    """Return the targets that follow from the decisions' marks, and the indices of the marked operations.

    `unrepeatable`: operations that must not run twice, regardless of their marks.
    """
    chosen = {mark.operation: _as_chosen(mark, unrepeatable) for mark in decided_marks(decided)}
    targets, marked = targets_of_marks(step, chosen, unrepeatable)
    own_gradient_readers = {
        step.number(value): readers
        for decision in decided.decisions
        if decision.recomputed
        for value, readers in decision.own_gradient_readers.items()
    }
    return Targets(targets.segments, targets.values, own_gradient_readers), marked


def _as_chosen(mark: DecidedMark, unrepeatable: Set[Operation]) -> ChosenMark:
    """Convert a decided mark to a `ChosenMark`. The mark is not written to the operation."""
    results = mark.operation.results
    match mark.source:
        case MarkSource.DECISION:
            values = {*mark.recomputed, *mark.for_own_gradient}
            return ChosenMark(mark.segment or None, tuple(result in values for result in results))
        case MarkSource.USER if mark.operation not in unrepeatable:
            return ChosenMark(mark.segment or None)
        case MarkSource.USER | MarkSource.REFUSED_PREFERENCE:
            return ChosenMark(mark.segment or None, (False,) * len(results))
