"""Choose the values that each segment saves for its own gradient under segment budgets, and derive marks for them.

The choice is simulated on the graph, as if the marks were written. If the copies of a value cannot be delayed, the
value is kept, and the choice is repeated for all other values. `limit_segments.py` writes the marks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation

from ...analysis.copies.copying import CloneOptions, plan_of_marks, unrepeatable_operations
from ...analysis.request.budgeted_segments import BudgetedSegment
from ...analysis.step.descriptions import describe_operation
from ...analysis.step.marks import ChosenMark, mark_of
from ...analysis.step.step import Step
from ...dialects.mark_kind import MarkKind
from ...dialects.result_marks import marks_of
from ...options.segment_budgets import SegmentBudget
from ...options.selection import Selection
from ...planning.by_segment.saved_storages import saved_after, saved_bytes
from ...planning.by_segment.segment_limits import (
    Segment,
    SegmentInfeasible,
    SegmentPlan,
    StorageRestrictions,
    plan_segments_within,
)
from ...planning.by_segment.segment_problem import KEPT_BY_MARK, TOO_EARLY
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...support.diagnostics import Refusal
from ...support.interface import option
from ...support.remarks import Remark, RemarkKind
from ...support.units import readable_bytes

MAX_SELECTIONS = 12
"""The maximum number of times that values are chosen and the choice is simulated. Each time narrows the restrictions;
beyond the limit, the budgets are refused."""
MAX_NAMED_BUFFERS = 3
"""The maximum number of storages that an error lists as the cause of a minimum."""

TOGETHER = "no plan meets the budgets of all segments together; with the other budgets, the proven minimum is"
NOT_PROVED = "no lower bound is known; with the other budgets, the smallest size found is"


@dataclass(frozen=True)
class SegmentLimits:
    """Limits on the bytes that the segments of one step save.

    Attributes:
        segments: The operations of each segment.
        most: The limit of each segment, in bytes.
        plan: A plan that stays within the limits.
    """

    segments: Mapping[str, frozenset[int]]
    most: Mapping[str, int]
    plan: Plan

    def violation(self, graph: Graph, plan: Plan) -> str | None:
        """Return an error message for a segment that exceeds its limit under the plan; None if all segments are within
        their limits."""
        for name, saved in saved_bytes(graph, self.segments, plan).items():
            if saved > self.most[name]:
                limit = readable_bytes(self.most[name])
                return f"segment '{name}' would save {readable_bytes(saved)}, but its limit is {limit}"
        return None


@dataclass(frozen=True)
class SegmentChoice:
    """The values that the segments of one step save within their budgets.

    Attributes:
        limits: The limits, with a plan that meets them.
        marks: The marks to write.
        remarks: One remark for each set of segments with the same bytes, budget and FLOPs.
    """

    limits: SegmentLimits
    marks: Mapping[Operation, ChosenMark]
    remarks: tuple[Remark, ...]


def choose_within_budgets(step: Step, targets: Sequence[BudgetedSegment], selection: Selection) -> SegmentChoice:
    """Choose the values that the segments of a step save within their budgets.

    Args:
        step: The step.
        targets: Its segments with budgets.
        selection: The user's selection.

    Raises:
        Refusal: No plan meets the budgets, or none was found.
    """
    chooser = _Chooser(step, targets, selection)
    limits = chooser.choose()
    return SegmentChoice(limits, chooser.marks, tuple(chooser.remarks()))


@dataclass
class _Chooser:
    """Searches for the operations to recompute under the segment budgets of one step.

    Attributes:
        step, targets, selection: As for `choose_within_budgets`.
        solutions: The current choice for each segment.
        marks: The marks that implement the current choice.
    """

    step: Step
    targets: Sequence[BudgetedSegment]
    selection: Selection
    solutions: Mapping[str, SegmentPlan] = field(default_factory=dict[str, SegmentPlan])
    marks: dict[Operation, ChosenMark] = field(default_factory=dict[Operation, ChosenMark])

    def choose(self) -> SegmentLimits:
        """Choose the values that the segments save within their budgets, and their marks. Raises `Refusal`."""
        step, graph = self.step, self.step.graph
        segments = {target.name: self._segment(target) for target in self.targets}
        members = frozenset[int]().union(*(segment.operations for segment in segments.values()))
        once = unrepeatable_operations(step, self.selection.permission)
        constraints = self._restrictions_of_marks(members)
        copying = CloneOptions(permission=self.selection.permission)
        for _ in range(MAX_SELECTIONS):
            solutions = plan_segments_within(graph, segments, once, self.selection.outputs, constraints)
            if isinstance(solutions, SegmentInfeasible):
                raise Refusal(self._first(solutions.segment), self._too_little(solutions))
            self.solutions = solutions
            self._update_marks()
            plan = plan_of_marks(step, copying, self.marks)
            if not (late := self._saved_unintentionally(saved_after(graph, plan, members))):
                most = {name: solution.budget_bytes for name, solution in solutions.items()}
                return SegmentLimits({name: segment.operations for name, segment in segments.items()}, most, plan)
            recomputed = frozenset[int]().union(*(solution.recomputed for solution in solutions.values()))
            constraints.not_recomputable.update((v, TOO_EARLY) for v in late & recomputed)
            constraints.read_by_others |= late - recomputed
        raise Refusal(
            self._first(self.targets[0].name),
            f"{option('segment-budgets')}: no plan was found that meets the budgets, but such a plan may exist; "
            "raise the budgets",
        )

    def _segment(self, target: BudgetedSegment) -> Segment:
        operations = frozenset(self.step.positions(target.operations))
        plain = saved_bytes(self.step.graph, {target.name: operations})[target.name]
        return Segment(operations, target.budget.limit_bytes(plain))

    def _restrictions_of_marks(self, members: Iterable[int]) -> StorageRestrictions:
        """Return the constraints that the user's marks put on storages."""
        stays, recomputed = dict[int, str](), set[int]()
        for op in members:
            for value in self.step.graph.makes[op]:
                mark = mark_of(self.step.value(value))
                if mark in (MarkKind.MUST_SAVE, MarkKind.OFFLOAD):
                    stays[value] = KEPT_BY_MARK
                elif mark is MarkKind.MUST_RECOMPUTE:
                    recomputed.add(value)
        return StorageRestrictions(stays, frozenset(recomputed))

    def _saved_unintentionally(self, saved: Collection[int]) -> frozenset[int]:
        """Return the values that are saved although the choice does not keep them."""
        return frozenset(saved).difference(*(solution.kept for solution in self.solutions.values()))

    def _update_marks(self) -> None:
        """Replace the marks with the marks of the current choice.

        An operation whose segment recomputes nothing in this choice keeps the segment name from an earlier choice.
        """
        recomputed_roots = frozenset[int]().union(*(solution.recomputed for solution in self.solutions.values()))
        for target in self.targets:
            for op in target.operations:
                number = self.step.position(op)
                segment = None if self.solutions[target.name].recomputes_nothing else target.name
                if segment is None and op in self.marks:
                    segment = self.marks[op].segment
                flags = None
                if number not in self.step.graph.literals and op.results and not _has_fixed_mark(op):
                    flags = tuple(root in recomputed_roots for root in self._roots(number))
                self.marks[op] = ChosenMark(segment, flags)

    def _roots(self, op: int) -> list[int]:
        return [self.step.graph.root[value] for value in self.step.graph.makes[op]]

    def _first(self, segment: str) -> Operation:
        return next(target.operations[0] for target in self.targets if target.name == segment)

    def _budget(self, segment: str) -> SegmentBudget:
        return next(target.budget for target in self.targets if target.name == segment)

    def _too_little(self, failure: SegmentInfeasible) -> str:
        budget = self._budget(failure.segment)
        graph = self.step.graph
        limit = f"{readable_bytes(failure.budget_bytes)} ({budget.pattern}:{budget.text})"
        refusal = f"segment '{failure.segment}' cannot save as little as {limit}"
        listed = [
            f"{describe_operation(self.step.operation(graph.maker[v]))}, {readable_bytes(graph.sizes[v])}: {why}"
            for v, why in failure.holding
        ]
        more = [f"and {len(listed) - MAX_NAMED_BUFFERS} more"] if len(listed) > MAX_NAMED_BUFFERS else []
        bound = "the proven minimum is" if failure.is_proved else TOGETHER if failure.is_proved_together else NOT_PROVED
        return "; ".join(
            [f"{refusal}: {bound} {readable_bytes(failure.least_bytes)}", *listed[:MAX_NAMED_BUFFERS], *more]
        )

    def remarks(self) -> Iterator[Remark]:
        """Yield a remark for each set of segments with the same bytes, budget and FLOPs, located at the first of these
        segments."""
        names_by_text = dict[str, list[str]]()
        for name, solution in self.solutions.items():
            budget = self._budget(name)
            limit = f"the budget {budget.pattern}:{budget.text}"
            if solution.recomputes_nothing:
                saved = f"{readable_bytes(solution.plain_bytes)} for the backward pass"
                words = f"{saved}, within {limit}: no recomputation is needed"
            else:
                flops = sum(self.step.graph.flops[op] for op in {self.step.graph.maker[v] for v in solution.recomputed})
                saved, plain = readable_bytes(solution.saved_bytes), readable_bytes(solution.plain_bytes)
                words = f"{saved} of {plain} for the backward pass, within {limit}, "
                words += f"{readable_bytes(solution.budget_bytes)}: {flops} FLOPs more"
            names_by_text.setdefault(words, []).append(name)
        for words, names in names_by_text.items():
            first = min(names, key=lambda name: self.step.position(self._first(name)))
            subject = (
                f"segment '{first}' saves" if len(names) == 1 else f"segment '{first}' and {len(names) - 1} more save"
            )
            yield Remark(self._first(first), f"{subject} {words}", RemarkKind.PASSED, segments=(first,))


def _has_fixed_mark(op: Operation) -> bool:
    """Return whether a user-given mark determines whether the operation is recomputed or saved."""
    return not {None, MarkKind.PREFER_SAVE, MarkKind.PREFER_RECOMPUTE}.issuperset(marks_of(op))
