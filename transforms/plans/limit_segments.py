"""Segment budgets: choose which values a segment saves for its own gradient, and write the choice as marks.

    segment-budgets="layer*:50%"

    %1 = stablehlo.sine %0 {recompute.segment = "layer0", recompute.recompute = true}     // recomputed
    %2 = stablehlo.tanh %1 {recompute.segment = "layer0", recompute.recompute = false}    // kept, within the budget

The choice is simulated on the graph. Values whose copies cannot be delayed are kept instead, and all other values are
chosen again. Later passes treat the marks like marks of the user.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...analysis.copies.copying import CloneOptions, plan_of_marks, unrepeatable
from ...analysis.memory.timeline import describe_operation
from ...analysis.request.budgeted_segments import BudgetedSegment, budgeted_segments, why_unmatched
from ...analysis.step.marks import Policy, mark_of
from ...analysis.step.order import functions_of
from ...analysis.step.step import Step
from ...dialects.names import Names
from ...options.segment_budgets import SegmentBudget, read_budgets
from ...options.selection import AUTO, BadSelection, Selection
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
from ...support.diagnostics import BadRequest, Refusal, Remark, RemarkKind
from ...support.interface import option
from ...support.operations import every_operation
from ...support.timing import part
from ...support.units import readable_bytes
from ..per_device.outline import is_stand_in
from ..phase import Steps

MAX_SELECTIONS = 12
"""The maximum number of iterations of choosing and simulating."""
NAMED_BUFFERS = 3
"""The maximum number of storages that an error lists as the cause of a minimum."""

TOGETHER = (
    "no choice keeps the budgets of all segments together, which is proved; with the other budgets the minimum is"
)
NOT_PROVED = "no lower bound is known; with the other budgets the best found is"


@dataclass(frozen=True)
class SegmentLimits:
    """Limits on the bytes that the segments of one step save.

    Attributes:
        segments: The operations of each segment.
        most: The limit of each segment, in bytes.
        plan: A plan within the limits.
    """

    segments: Mapping[str, frozenset[int]]
    most: Mapping[str, int]
    plan: Plan

    def violation(self, graph: Graph, plan: Plan) -> str | None:
        """Return an error text for a segment that saves more than its limit under the plan; None if all limits hold."""
        for name, saved in saved_bytes(graph, self.segments, plan).items():
            if saved > self.most[name]:
                limit = readable_bytes(self.most[name])
                return f"segment '{name}' would save {readable_bytes(saved)}, but may save {limit}"
        return None


@dataclass(frozen=True)
class StepLimits:
    """The limits of each step by function name, and remarks to report."""

    of: Mapping[str, SegmentLimits] = field(default_factory=dict[str, SegmentLimits])
    remarks: tuple[Remark, ...] = ()


@part("segment budgets")
def mark_segment_budgets(steps: Steps, selection: Selection) -> StepLimits:
    """Choose within the budgets and write the marks.

    Raises:
        Refusal: A budget is invalid, matches no segment, or is below the bytes that its segment has to save.
    """
    first = steps[0][0]
    try:
        budgets = read_budgets(selection.segment_budgets)
        matches = [(function, step, *budgeted_segments(step.phases, budgets)) for function, step in steps]
    except BadSelection as error:
        raise BadRequest(first, str(error)) from error
    for budget in budgets:
        if all(budget in left for *_, left in matches):
            _refuse_unknown([(function, step) for function, step, *_ in matches], budget)
    demands, remarks = dict[str, SegmentLimits](), list[Remark]()
    for function, step, segments, _ in matches:
        if segments:
            chooser = _Chooser(step, segments, selection)
            demands[_name(function)] = chooser.choose()
            remarks += chooser.remarks()
    return StepLimits(demands, tuple(remarks))


class EmittedPlan(Protocol):
    """The plan that was applied to a function, and the function's graph."""

    @property
    def function(self) -> str: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def plan(self) -> Plan: ...


def check_limits(module: ModuleOp, demands: Mapping[str, SegmentLimits], emitted_plans: Iterable[EmittedPlan]) -> None:
    """Raise `Refusal` if a segment saves more than its limit, because other recomputation reads values of the segment.

    `demands`: the limits by function name.
    """
    for emitted in emitted_plans:
        demand = demands.get(emitted.function)
        if demand is not None and (why := demand.violation(emitted.graph, emitted.plan)) is not None:
            function = next((public for public in functions_of(module) if _name(public) == emitted.function), module)
            raise Refusal(function, f"{why}: other requested recomputation reads from it")


def _name(function: FuncOp) -> str:
    return function.sym_name.data


def selection_without_budgets(selection: Selection) -> Selection:
    """Return the selection for the segments without a budget, which recomputes none unless it names segments."""
    is_open = selection.segments == AUTO.segments and selection.checkpoints is None and not selection.segment_count
    if selection.segment_budgets and is_open:
        return replace(selection, segments="none", segment_budgets=())
    return replace(selection, segment_budgets=())


def _refuse_unknown(steps: Steps, budget: SegmentBudget) -> None:
    """Raise `Refusal` for a budget that matches no segment.

    The error is reported at the first function that contains no placeholder of another step, since these hide segments.
    """
    preferred = [pair for pair in steps if not any(map(is_stand_in, every_operation(pair[0])))] or list(steps)
    function, step = preferred[0]
    error = BadSelection(why_unmatched(step.phases, budget))
    raise BadRequest(function, str(error)) from error


@dataclass
class _Chooser:
    """Search for the operations to recompute under the segment budgets of one step."""

    step: Step
    targets: Sequence[BudgetedSegment]
    selection: Selection
    solutions: Mapping[str, SegmentPlan] = field(default_factory=dict[str, SegmentPlan])
    forced: frozenset[Operation] = frozenset()

    def choose(self) -> SegmentLimits:
        """Choose the values that the segments save within their budgets, and mark the operations.

        Raises:
            Refusal: No choice keeps the budgets, or none was found.
        """
        self.forced = frozenset(op for target in self.targets for op in target.operations if _is_forced(op))
        step, graph = self.step, self.step.graph
        segments = {target.name: self._segment(target) for target in self.targets}
        members = frozenset[int]().union(*(segment.operations for segment in segments.values()))
        once, constraints = unrepeatable(step, self.selection.permission), self._restrictions_of_marks(members)
        copying = CloneOptions(permission=self.selection.permission)
        for _ in range(MAX_SELECTIONS):
            solutions = plan_segments_within(graph, segments, once, self.selection.outputs, constraints)
            if isinstance(solutions, SegmentInfeasible):
                raise Refusal(self._first(solutions.segment), self._too_little(solutions))
            self.solutions = solutions
            self._write()
            plan = plan_of_marks(step, copying)
            if not (late := self._saved_unintentionally(saved_after(graph, plan, members))):
                most = {name: solution.most for name, solution in solutions.items()}
                return SegmentLimits({name: segment.operations for name, segment in segments.items()}, most, plan)
            again = frozenset[int]().union(*(solution.again for solution in solutions.values()))
            constraints.stays.update((v, TOO_EARLY) for v in late & again)
            constraints.read |= late - again
        raise Refusal(
            self._first(self.targets[0].name),
            f"{option('segment-budgets')}: found no choice that keeps them (not proved to be impossible)",
        )

    def _segment(self, target: BudgetedSegment) -> Segment:
        operations = frozenset(self.step.positions(target.operations))
        plain = saved_bytes(self.step.graph, {target.name: operations})[target.name]
        return Segment(operations, target.budget.most(plain))

    def _restrictions_of_marks(self, members: Iterable[int]) -> StorageRestrictions:
        """Return the constraints that the user's marks put on storages."""
        stays, again = dict[int, str](), set[int]()
        for op in members:
            for value in self.step.graph.makes[op]:
                mark = mark_of(self.step.value(value))
                if mark in (Policy.MUST_SAVE, Policy.OFFLOAD):
                    stays[value] = KEPT_BY_MARK
                elif mark is Policy.MUST_RECOMPUTE:
                    again.add(value)
        return StorageRestrictions(stays, frozenset(again))

    def _saved_unintentionally(self, saved: Collection[int]) -> frozenset[int]:
        """Return the values that are saved although the choice does not keep them."""
        return frozenset(saved).difference(*(solution.kept for solution in self.solutions.values()))

    def _write(self) -> None:
        again = frozenset[int]().union(*(solution.again for solution in self.solutions.values()))
        for target in self.targets:
            for op in target.operations:
                number = self.step.position(op)
                if not self.solutions[target.name].is_nothing:
                    op.attributes[Names.SEGMENT] = StringAttr(target.name)
                if number not in self.step.graph.literals and op.results and op not in self.forced:
                    marks = [BoolAttr.from_bool(root in again) for root in self._roots(number)]
                    op.attributes[Names.RECOMPUTE] = marks[0] if len(set(marks)) == 1 else ArrayAttr(marks)

    def _roots(self, op: int) -> list[int]:
        return [self.step.graph.root[value] for value in self.step.graph.makes[op]]

    def _first(self, segment: str) -> Operation:
        return next(target.operations[0] for target in self.targets if target.name == segment)

    def _budget(self, segment: str) -> SegmentBudget:
        return next(target.budget for target in self.targets if target.name == segment)

    def _too_little(self, failure: SegmentInfeasible) -> str:
        budget, graph = self._budget(failure.segment), self.step.graph
        limit = f"{readable_bytes(failure.most)} ({budget.pattern}:{budget.text})"
        refusal = f"segment '{failure.segment}' cannot save as little as {limit}"
        listed = [
            f"{describe_operation(self.step.operation(graph.maker[v]))}, {readable_bytes(graph.sizes[v])}: {why}"
            for v, why in failure.holding
        ]
        more = [f"and {len(listed) - NAMED_BUFFERS} more"] if len(listed) > NAMED_BUFFERS else []
        bound = "the proven minimum is" if failure.proved else TOGETHER if failure.together else NOT_PROVED
        return "; ".join([f"{refusal}: {bound} {readable_bytes(failure.least)}", *listed[:NAMED_BUFFERS], *more])

    def remarks(self) -> Iterator[Remark]:
        """Yield a remark for each set of segments with equal savings, at the first of them."""
        names_by_text = dict[str, list[str]]()
        for name, solution in self.solutions.items():
            budget = self._budget(name)
            limit = f"the budget {budget.pattern}:{budget.text}"
            if solution.is_nothing:
                saved = f"{readable_bytes(solution.plain)} for the backward pass"
                words = f"{saved}, within {limit}: no recomputation is needed"
            else:
                flops = sum(self.step.graph.flops[op] for op in {self.step.graph.maker[v] for v in solution.again})
                saved, plain = readable_bytes(solution.bytes), readable_bytes(solution.plain)
                words = f"{saved} of {plain} for the backward pass, within {limit}, "
                words += f"{readable_bytes(solution.most)}: {flops} FLOPs more"
            names_by_text.setdefault(words, []).append(name)
        for words, names in names_by_text.items():
            first = min(names, key=lambda name: self.step.position(self._first(name)))
            subject = (
                f"segment '{first}' saves" if len(names) == 1 else f"segment '{first}' and {len(names) - 1} more save"
            )
            yield Remark(self._first(first), f"{subject} {words}", RemarkKind.PASSED)


def _is_forced(op: Operation) -> bool:
    """Return whether a mark of the user decides whether the operation is recomputed."""
    policies = {mark_of(result) for result in op.results}
    return Names.RECOMPUTE in op.attributes and not policies <= {None, Policy.PREFER_SAVE, Policy.PREFER_RECOMPUTE}
