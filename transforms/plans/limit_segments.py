"""Write the choice under segment budgets as marks: mark the values that each segment saves, and the values that it
recomputes.

    segment-budgets="layer*:50%"

    %1 = stablehlo.sine %0 {recompute.segment = "layer0", recompute.recompute = true}     // recomputed
    %2 = stablehlo.tanh %1 {recompute.segment = "layer0", recompute.recompute = false}    // kept, within the budget

`analysis/copies/segments_within_budgets.py` chooses the values. Later passes treat these marks like user-given marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...analysis.copies.segments_within_budgets import SegmentLimits, choose_within_budgets
from ...analysis.request.budgeted_segments import budgeted_segments, unmatched_error
from ...analysis.step.marks import ChosenMark
from ...analysis.step.order import functions_of
from ...analysis.step.step import Steps
from ...dialects.names import Names
from ...dialects.result_marks import decided_mark
from ...options.segment_budgets import SegmentBudget, read_budgets
from ...options.selection import AUTO, BadSelection, Selection
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...support.diagnostics import BadRequest, Refusal, Remark
from ...support.operations import every_operation
from ...support.timing import part
from ..per_device.outline import is_stand_in
from .kept_dependents import demanded_values, keep_dependents


@dataclass(frozen=True)
class StepLimits:
    """The limits of the segments of each step, by function name, and the remarks to report."""

    of: Mapping[str, SegmentLimits] = field(default_factory=dict[str, SegmentLimits])
    remarks: tuple[Remark, ...] = ()


@part("segment budgets")
def mark_segment_budgets(steps: Steps, selection: Selection) -> StepLimits:
    """Choose the values that segments save within their budgets, and mark their operations.

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
    remarks = list[Remark]()
    for function, step, segments, _ in matches:
        if segments:
            choice = choose_within_budgets(step, segments, selection)
            requested = demanded_values(step)
            _write_marks(choice.marks)
            keep_dependents(step, requested)
            limits[_name(function)] = choice.limits
            remarks += choice.remarks
    return StepLimits(limits, tuple(remarks))


def _write_marks(marks: Mapping[Operation, ChosenMark]) -> None:
    for op, mark in marks.items():
        if mark.segment is not None:
            op.attributes[Names.SEGMENT] = StringAttr(mark.segment)
        if mark.recomputed is not None:
            op.attributes[Names.RECOMPUTE] = decided_mark(mark.recomputed)


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
    is_open = selection.segments == AUTO.segments and selection.checkpoints is None and not selection.segment_count
    if selection.segment_budgets and is_open:
        return replace(selection, segments="none", segment_budgets=())
    return replace(selection, segment_budgets=())


def _refuse_unknown(steps: Steps, budget: SegmentBudget) -> None:
    """Raise `Refusal` for a budget that matches no segment.

    The error is reported at the first function that contains no outlined step, if there is one: the segments of an
    outlined step are not visible in the function around it.
    """
    preferred = [pair for pair in steps if not any(map(is_stand_in, every_operation(pair[0])))] or list(steps)
    function, step = preferred[0]
    error = unmatched_error(step.phases, budget)
    raise BadRequest(function, str(error)) from error
