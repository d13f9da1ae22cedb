"""Choose the values that each segment saves and recomputes under its segment budget, in the form of marks.

    segment-budgets="layer*:50%"

    %1 = stablehlo.sine %0 {recompute.segment = "layer0", recompute.recompute = true}     // recomputed
    %2 = stablehlo.tanh %1 {recompute.segment = "layer0", recompute.recompute = false}    // kept, within the budget

`segments_within_budgets.py` chooses the values of a step. `write_chosen_marks` in `transforms/plans/write_decisions.py`
writes the marks; later passes treat them like user-given marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...analysis.request.budgeted_segments import budgeted_segments, unmatched_error
from ...analysis.request.segments import find_segments
from ...analysis.step.marks import ChosenMark
from ...analysis.step.order import functions_of
from ...analysis.step.step import Step, Steps
from ...options.segment_budgets import SegmentBudget, read_budgets
from ...options.selection import AUTO, BadSelection, Selection
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...support.diagnostics import BadRequest, Refusal
from ...support.remarks import Remark
from ...support.timing import part
from ...transforms.plans.misfits import contains_outlined_step
from .segments_within_budgets import SegmentLimits, choose_within_budgets


@dataclass(frozen=True)
class StepLimits:
    """The limits of the segments of each step.

    Attributes:
        of: The limits on segments, by function name.
        marks: For each step, the marks to write.
        remarks: The remarks to report.
        unselected: The operations whose segment attribute is to be removed, because their segment has no budget and the
            selection names no segments.
    """

    of: Mapping[str, SegmentLimits] = field(default_factory=dict[str, SegmentLimits])
    marks: tuple[tuple[Step, Mapping[Operation, ChosenMark]], ...] = ()
    remarks: tuple[Remark, ...] = ()
    unselected: tuple[Operation, ...] = ()

    @property
    def marked(self) -> frozenset[Operation]:
        """The operations whose marks are part of the choice. The user did not write these marks."""
        return frozenset(op for _, marks in self.marks for op, mark in marks.items() if mark.recomputed is not None)


@part("segment budgets")
def limit_segments(steps: Steps, selection: Selection) -> StepLimits:
    """Choose the values that segments save within their budgets.

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
        if all(budget in unmatched_budgets for *_, unmatched_budgets in matches):
            _refuse_unknown([(function, step) for function, step, *_ in matches], budget)
    limits = dict[str, SegmentLimits]()
    marks = list[tuple[Step, Mapping[Operation, ChosenMark]]]()
    remarks = list[Remark]()
    unselected = list[Operation]()
    for function, step, segments, _ in matches:
        if names_no_segments(selection):
            limited = {op for segment in segments for op in segment.operations}
            unselected += [op for op in find_segments(step.phases, "none") if op not in limited]
        if segments:
            choice = choose_within_budgets(step, segments, selection)
            limits[_name(function)] = choice.limits
            marks.append((step, choice.marks))
            remarks += choice.remarks
    return StepLimits(limits, tuple(marks), tuple(remarks), tuple(unselected))


class EmittedPlan(Protocol):
    """The plan that was applied to a function, and the function's graph."""

    @property
    def function(self) -> str: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def plan(self) -> Plan: ...


def check_limits(module: ModuleOp, limits: Mapping[str, SegmentLimits], emitted_plans: Iterable[EmittedPlan]) -> None:
    """Raise `Refusal` if a segment saves more than its limit, for example because recomputation elsewhere reads its
    values.

    Args:
        module: The module, at which errors are reported.
        limits: The limits by function name.
        emitted_plans: The applied plans.
    """
    for emitted in emitted_plans:
        of_step = limits.get(emitted.function)
        if of_step is not None and (why := of_step.violation(emitted.graph, emitted.plan)) is not None:
            function = next((public for public in functions_of(module) if _name(public) == emitted.function), module)
            raise Refusal(
                function,
                f"{why}: operations outside this segment are recomputed from its values, so these must be saved",
            )


def _name(function: FuncOp) -> str:
    return function.sym_name.data


def selection_without_budgets(selection: Selection) -> Selection:
    """Return the selection for segments without a budget. They are recomputed only if the selection names segments."""
    if selection.segment_budgets and names_no_segments(selection):
        return replace(selection, segments="none", segment_budgets=())
    return replace(selection, segment_budgets=())


def names_no_segments(selection: Selection) -> bool:
    """Return whether the selection leaves the choice of segments to the search."""
    return selection.segments == AUTO.segments and selection.checkpoints is None and not selection.segment_count


def _refuse_unknown(steps: Steps, budget: SegmentBudget) -> None:
    """Raise `Refusal` for a budget that matches no segment.

    The error is reported at the first function that contains no outlined step, if there is one: the segments of an
    outlined step are not visible in the function around it.
    """
    preferred = [pair for pair in steps if not contains_outlined_step(pair[0])] or list(steps)
    function, step = preferred[0]
    error = unmatched_error(step.phases, budget)
    raise BadRequest(function, str(error)) from error
