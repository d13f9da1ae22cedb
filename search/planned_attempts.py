"""Plans for the attempts of a step: decisions, the values to recompute for them, and copies of these; the IR stays
unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ..analysis.copies.attempts import Attempt
from ..analysis.copies.copying import CloneOptions, refused_marks, with_dependent_targets
from ..analysis.copies.decide import Decisions, decide, explicit_mark
from ..analysis.step.marks import asks_to_recompute, is_forced, is_to_recompute
from ..analysis.step.step import Step
from ..dialects.names import Names
from ..options.selection import Selection
from ..planning.by_segment.copy_groups import GroupOptions
from ..planning.by_segment.copy_requests import Targets
from ..planning.plan import Plan
from ..support.timing import part


@dataclass(frozen=True)
class PlannedAttempt:
    """An attempt with its decisions and its plan."""

    attempt: Attempt
    decided: Decisions
    plan: Plan

    @cached_property
    def segments(self) -> Mapping[int, str]:
        """The segment of each operation of a segment that is recomputed, in program order."""
        position = self.decided.step.position
        recomputed = [decision for decision in self.decided.decisions if decision.recomputed and decision.segment]
        segment_of = {position(op): decision.segment for decision in recomputed for op in decision.operations}
        return dict(sorted(segment_of.items()))


@dataclass(frozen=True)
class AttemptTargets:
    """The decisions of an attempt and the values to recompute for them. Both are independent of how the attempt copies
    segments."""

    decided: Decisions
    targets: Targets

    @classmethod
    @part("plan")
    def of(
        cls, step: Step, selection: Selection, attempt: Attempt, named: Mapping[Operation, str] | None = None
    ) -> AttemptTargets:
        """Decide which values are recomputed for an attempt.

        Args:
            named: The named segments, if already computed.

        Raises:
            BadSelection: For a selection that does not apply to the step.
        """
        decided = decide(step, selection, attempt, named, staged=False)
        unrepeatable = frozenset(op for op, _ in refused_marks(step, selection.permission))
        targets, marked = _targets_of_decisions(step, decided, unrepeatable)
        return cls(decided, with_dependent_targets(step, targets, marked))


@part("plan")
def plan_attempt(
    step: Step, selection: Selection, attempt: Attempt, targets: AttemptTargets, copies: int = 2
) -> PlannedAttempt:
    """Plan an attempt.

    Args:
        targets: Those of the attempt, or of one with the same cuts and the same saved values.
        copies: The maximum number of copies of one operation.
    """
    grouping = GroupOptions(copies, attempt.chain, attempt.beside)
    options = CloneOptions(grouping, attempt.each_pass, selection.permission)
    return PlannedAttempt(attempt, targets.decided, options.plan(step, targets.targets))


def _targets_of_decisions(
    step: Step, decided: Decisions, unrepeatable: Set[Operation]
) -> tuple[Targets, frozenset[int]]:
    """Compute the targets of the marks that `write_marks` would write for the decisions, and the operations with marks.

    `unrepeatable`: operations that may not run twice, regardless of their marks.
    """
    segments, values, own = dict[int, str](), set[int](), dict[int, frozenset[int]]()
    marked, dropped = set[int](), set[Operation]()
    for decision in decided.decisions:
        if not decision.recomputed:
            dropped.update(op for op in decision.operations if explicit_mark(op) and not is_forced(op))
            continue
        own.update({step.number(value): readers for value, readers in decision.own.items()})
        for op in decision.operations:
            index = step.position(op)
            marked.add(index)
            if decision.segment:
                segments[index] = decision.segment
            if explicit_mark(op) is None:
                values.update(step.number(result) for result in op.results if result in decision.values)
    for index, op in enumerate(step.phases.order.operations):
        if not op.attributes:
            # Without attributes it is neither marked nor in a segment.
            continue
        if (Names.RECOMPUTE in op.attributes and op not in unrepeatable) or Names.CHECKPOINT in op.attributes:
            marked.add(index)
        if not step.graph.forward[index]:
            continue
        stated = op.attributes.get(Names.SEGMENT)
        if isinstance(stated, StringAttr):
            segments.setdefault(index, stated.data)
        if op not in dropped and op not in unrepeatable and asks_to_recompute(op):
            values.update(step.number(result) for result in op.results if is_to_recompute(result))
    for value in values:
        segments.setdefault(step.graph.maker[value], "")
    return Targets(segments, frozenset(values), own), frozenset(marked)
