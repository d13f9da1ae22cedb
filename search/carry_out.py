"""Rewrite each step by its best attempt, or by given plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.copies.copying import unrepeatable
from ..analysis.memory.peaks import Forecast, Peaks
from ..analysis.step.exchanges import NOT_ALIKE, WITH_COLLECTIVES, why_not_again
from ..analysis.step.order import functions_of
from ..analysis.step.step import Step
from ..options.recompute_options import RecomputeOptions
from ..options.selection import Selection
from ..planning.plan import Plan
from ..rules.effects import Permission
from ..support.diagnostics import Remark, RemarkKind, Topic
from ..support.operations import name_of
from ..transforms.clone import Cloned, clone_as_planned, clone_by, clone_marked
from ..transforms.mark import decision_remarks, write_marks
from ..transforms.phase import Steps
from ..transforms.plans.misfits import Misfits
from .choose import ChosenAttempt, choose_for, why_worse
from .left_steps import as_rest, remark_on_left_step


def carry_out_best(module: ModuleOp, steps: Steps, options: RecomputeOptions, cut: bool) -> Cloned:
    """Rewrite each step by its best attempt.

    Args:
        cut: Whether loops of the module have been cut.

    Raises:
        Refusal: For a selection that does not apply to the module.
    """
    selection, emission = options.selection, options.emission
    remarks_of, before, misfits, saving = dict[FuncOp, list[Remark]](), dict[str, Peaks](), Misfits(), None
    forecasts = dict[str, Peaks]()
    plans = {function: Plan() for function, _ in steps}
    for function, step in steps:
        choice = misfits.try_on(function, partial(choose_for, function, step, options))
        if choice is None:
            continue
        remarks_of[function] = _choice_remarks(function, step, choice, selection)
        if choice.refused is not None:
            continue
        planned = choice.chosen.planned
        write_marks(planned.decided)
        plans[function] = planned.plan
        if emission.keeps_barriers and not cut and [function] == functions_of(module):
            saving = 1 - choice.chosen.peaks.xla / max(choice.before.xla, 1)
        if choice.is_free:
            if emission.keeps_barriers:
                # The peak under XLA before the change may be computed after the step has changed.
                choice.forecast.detach()
            before[function.sym_name.data] = choice.before
            forecasts[function.sym_name.data] = choice.chosen.peaks
    misfits.refuse()
    cloned = clone_marked(module, steps, lambda function, _: plans[function], selection.permission)
    inside = cut or any(plan.copies for plan in plans.values())
    per_step = [
        remarks if plans[function].copies or not inside else as_rest(remarks)
        for function, remarks in remarks_of.items()
    ]
    all_remarks = (*chain(*per_step), *cloned.remarks)
    return replace(cloned, remarks=all_remarks, before=before, forecasts=forecasts, saving=saving)


def _choice_remarks(function: FuncOp, step: Step, choice: ChosenAttempt, selection: Selection) -> list[Remark]:
    """Return the remarks on a step: on its segments, on the choice, and on collectives that prevent copies. Must be
    computed before marks are written."""
    remarks = list(decision_remarks(function, choice.chosen.planned.decided, selection))
    if choice.refused is None:
        remarks.extend(choice.remarks(function))
    else:
        remarks.append(remark_on_left_step(function, choice.refused))
    if choice.refused is not None or not choice.chosen.planned.plan.copies:
        remarks.extend(_collective_remarks(step, selection.permission))
    return remarks


def _collective_remarks(step: Step, permission: Permission) -> Iterator[Remark]:
    """Yield a remark for each reason why operations with collectives are not recomputed."""
    reported = set[str]()
    for number in sorted(unrepeatable(step, permission)):
        op = step.operation(number)
        reason = why_not_again(op, permission)
        if reason in (WITH_COLLECTIVES, NOT_ALIKE) and reason not in reported:
            reported.add(reason)
            topic = Topic.COLLECTIVES if reason == WITH_COLLECTIVES else Topic.COLLECTIVES_UNEQUAL
            yield Remark(op, f"{name_of(op)} is not recomputed: {reason}", topic=topic)


def carry_out_planned(module: ModuleOp, steps: Steps, options: RecomputeOptions) -> Cloned:
    """Rewrite each step by the plan or the planner of the options, with a remark on each step whose peak the plan does
    not lower.

    Raises:
        Refusal: For a plan that does not match its step.
    """
    planned, permission = options.planned, options.selection.permission
    assert planned is not None, "the options have a plan or a planner"
    forecasts = [Forecast.of(function, step, options.emission) for function, step in steps]
    if options.emission.keeps_barriers:
        # The peak under XLA before the change is computed after the step has changed.
        forecasts = [forecast.detach() for forecast in forecasts]
    if callable(planned):
        cloned = clone_by(module, planned, permission, steps)
    else:
        cloned = clone_as_planned(module, planned, permission, steps)
    remarks = list(cloned.remarks)
    for (function, _), forecast, clone_of_step in zip(steps, forecasts, cloned.steps, strict=True):
        segments = {note.operation: note.segment for note in clone_of_step.notes if note.segment}
        after = forecast.of_plan(clone_of_step.plan, segments)
        if (
            clone_of_step.plan.copies
            and (reason := why_worse(forecast.without_copies(), after, forecast.keeps_barriers)) is not None
        ):
            remarks.append(Remark(function, f"{reason}: the plan is carried out anyway", RemarkKind.ANALYSIS))
    return replace(cloned, remarks=tuple(remarks))
