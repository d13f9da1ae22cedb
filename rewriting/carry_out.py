"""Apply a plan to each step of a module: the plan of its best attempt, or a plan that the options give."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ..analysis.copies.copying import unrepeatable_operations
from ..analysis.copies.mark_effects import remarks_on_marks
from ..analysis.forecasts.peaks import Forecast, Peaks
from ..analysis.step.exchanges import CollectivesInside, why_not_repeatable
from ..analysis.step.order import functions_of
from ..analysis.step.step import Step, Steps
from ..dialects.names import Names
from ..options.recompute_options import RecomputeOptions
from ..options.selection import Selection
from ..planning.plan import Plan
from ..rules.effects import Permission
from ..search.choice.choose import ChosenAttempt, choose_for
from ..search.choice.unchanged_steps import remark_on_unchanged_step, reword_beside_rewritten
from ..search.choice.vetoes import why_worse
from ..support.operations import name_of
from ..support.remarks import Remark, RemarkKind, Topic
from ..transforms.clone import clone_marked
from ..transforms.plans.cloned_steps import Cloned
from ..transforms.plans.given_plans import clone_with_planner, clone_with_plans
from ..transforms.plans.misfits import for_each_step
from ..transforms.plans.write_decisions import decision_remarks, write_marks


@dataclass(frozen=True)
class CarriedOut(Cloned):
    """The result of applying plans, with the peaks on which vetoes depend.

    Attributes:
        before: The original peaks of the steps with copies, by function name.
        optional: The names of the functions whose steps may still be left unchanged.
        forecasts: The forecast peaks of the steps with copies, by function name.
        saved_share: The share by which the peak falls according to the XLA:CPU model; None if there is no forecast for
            the whole module.
    """

    before: Mapping[str, Peaks] = field(default_factory=dict[str, Peaks])
    optional: frozenset[str] = frozenset()
    forecasts: Mapping[str, Peaks] = field(default_factory=dict[str, Peaks])
    saved_share: float | None = None

    @property
    def before_optional(self) -> Mapping[str, Peaks]:
        """The original peaks of the steps that may still be left unchanged, by function name."""
        return {name: peaks for name, peaks in self.before.items() if name in self.optional}

    @property
    def before_demanded(self) -> Mapping[str, Peaks]:
        """The original peaks of the steps in which marks or segment budgets demand copies, by function name."""
        return {name: peaks for name, peaks in self.before.items() if name not in self.optional}

    def emitted_peaks(self, emitted: Steps) -> Mapping[FuncOp, Peaks]:
        """Return the peaks of the emitted steps that have copies."""
        copied = {step.function for step in self.steps if step.plan.copies}
        return {
            function: _emitted_peaks(function, step, self.forecasts.get(name))
            for function, step in emitted
            if (name := function.sym_name.data) in copied
        }


def _emitted_peaks(function: FuncOp, step: Step, forecast: Peaks | None) -> Peaks:
    """Return the peaks of an emitted step.

    CSE may extend live ranges beyond the plan. If neither the peak in program order nor the eager peak exceeds its
    forecast, the forecast peak under the XLA:CPU model is reused.
    """
    peaks = Peaks.of_step(function, step)
    if forecast is None or peaks.in_order > forecast.in_order or peaks.eager > forecast.eager:
        return peaks
    return Peaks.from_values(peaks.in_order, peaks.eager, lambda: forecast.xla)


def carry_out_best(
    module: ModuleOp,
    steps: Steps,
    options: RecomputeOptions,
    has_cut_loops: bool,
    chosen: Set[Operation] = frozenset(),
) -> CarriedOut:
    """Rewrite each step according to its best attempt.

    Args:
        module: The module, which is changed in place.
        steps: Its steps.
        options: The options. Their selection determines the attempts.
        has_cut_loops: Whether loops of the module have been cut.
        chosen: The operations whose marks were written for segment budgets.

    Raises:
        Refusal: The selection does not apply to the module.
    """
    selection = options.selection
    choices = for_each_step(steps, partial(choose_for, options=options))
    remarks_of = {
        function: _choice_remarks(function, step, choices[function], selection, chosen)
        for function, step in steps
        if function in choices
    }
    applied = {function: choice for function, choice in choices.items() if choice.refused is None}
    marked = {op for _, step in steps for op in step.phases.order.operations if Names.RECOMPUTE in op.attributes}
    for choice in applied.values():
        write_marks(choice.chosen.planned.decided)
    plans = {function: choice.chosen.planned.plan for function, choice in applied.items()}
    keeps_barriers = options.emission.keeps_barriers
    saved_share = _predicted_share(module, applied) if keeps_barriers and not has_cut_loops else None
    copying = {
        function.sym_name.data: choice for function, choice in applied.items() if choice.chosen.planned.plan.copies
    }
    if keeps_barriers:
        _read_functions(choice.forecast for choice in copying.values())
    cloned = clone_marked(module, steps, lambda function, _: plans.get(function, Plan()), selection.permission)
    on_choices = _beside_rewritten(remarks_of, plans) if copying or has_cut_loops else chain(*remarks_of.values())
    return CarriedOut(
        steps=cloned.steps,
        remarks=(*on_choices, *_without_marks_of_choice(cloned.remarks, marked - chosen)),
        before={name: choice.before for name, choice in copying.items()},
        optional=frozenset(name for name, choice in copying.items() if choice.is_free),
        forecasts={name: choice.chosen.peaks for name, choice in copying.items()},
        saved_share=saved_share,
    )


def _read_functions(forecasts: Iterable[Forecast]) -> None:
    """Read the functions of the forecasts before they change, because the original peaks under the XLA:CPU model are
    computed on first access."""
    for forecast in forecasts:
        forecast.read_function()


def _beside_rewritten(remarks_of: Mapping[FuncOp, list[Remark]], plans: Mapping[FuncOp, Plan]) -> Iterator[Remark]:
    """Yield the remarks on all steps. Reword the remarks on each step without copies, because another part of the
    module is rewritten."""
    for function, remarks in remarks_of.items():
        yield from remarks if plans.get(function, Plan()).copies else reword_beside_rewritten(remarks)


def _without_marks_of_choice(remarks: Iterable[Remark], marked_by_user: Collection[Operation]) -> Iterator[Remark]:
    """Yield the remarks, with the topic `OTHER` for a remark on a refused or ineffective mark that the choice wrote,
    for instance on a callback inside a segment. Such a remark must not be counted as a remark on a user's mark."""
    topics = (Topic.MARK_REFUSED, Topic.NO_EFFECT)
    for remark in remarks:
        is_of_choice = remark.topic in topics and remark.operation not in marked_by_user
        yield replace(remark, topic=Topic.OTHER) if is_of_choice else remark


def _predicted_share(module: ModuleOp, applied: Mapping[FuncOp, ChosenAttempt]) -> float | None:
    """Return the share by which a choice is predicted to lower the peak under the XLA:CPU model; None unless the choice
    is for the only function of the module."""
    if len(applied) != 1 or list(applied) != functions_of(module):
        return None
    (choice,) = applied.values()
    return 1 - choice.chosen.peaks.xla / max(choice.before.xla, 1)


def _choice_remarks(
    function: FuncOp, step: Step, choice: ChosenAttempt, selection: Selection, chosen: Set[Operation]
) -> list[Remark]:
    """Return the remarks on the segments of a step, on the choice, and on collectives that prevent copies.

    This function must be called before marks are written. `chosen`: as for `carry_out_best`.
    """
    remarks = list(decision_remarks(function, choice.chosen.planned.decided, selection))
    if choice.refused is None:
        remarks.extend(choice.remarks(function))
    else:
        remarks.append(remark_on_unchanged_step(function, choice.refused))
    if choice.refused is not None or not choice.chosen.planned.plan.copies:
        remarks.extend(_collective_remarks(step, selection.permission))
    else:
        planned = choice.chosen.planned
        remarks.extend(remarks_on_marks(planned.decided, planned.plan, selection.permission, chosen))
    return remarks


_COLLECTIVE_TOPICS: Mapping[CollectivesInside, Topic] = {
    CollectivesInside.NOT_ALLOWED: Topic.COLLECTIVES,
    CollectivesInside.UNEQUAL: Topic.COLLECTIVES_UNEQUAL,
}


def _collective_remarks(step: Step, permission: Permission) -> Iterator[Remark]:
    """Yield one remark for each reason that operations with collectives are not recomputed."""
    reported = set[CollectivesInside]()
    for number in sorted(unrepeatable_operations(step, permission)):
        op = step.operation(number)
        reason = why_not_repeatable(op, permission)
        if isinstance(reason, CollectivesInside) and reason not in reported:
            reported.add(reason)
            yield Remark(op, f"{name_of(op)} is not recomputed: {reason}", topic=_COLLECTIVE_TOPICS[reason])


def carry_out_planned(module: ModuleOp, steps: Steps, options: RecomputeOptions) -> CarriedOut:
    """Rewrite each step according to the plan or the planner of the options.

    The result has a remark on each step whose peak the plan does not lower.

    Raises:
        Refusal: A plan does not match its step.
    """
    planned, permission = options.planned, options.selection.permission
    assert planned is not None, "the options have a plan or a planner"
    forecasts = [Forecast.of(function, step, options.emission) for function, step in steps]
    if options.emission.keeps_barriers:
        _read_functions(forecasts)
    if callable(planned):
        cloned = clone_with_planner(module, planned, permission, steps)
    else:
        cloned = clone_with_plans(module, planned, permission, steps)
    remarks = list(cloned.remarks)
    for (function, _), forecast, clone_of_step in zip(steps, forecasts, cloned.steps, strict=True):
        segments = {note.operation: note.segment for note in clone_of_step.notes if note.segment}
        after = forecast.of_plan(clone_of_step.plan, segments)
        if not clone_of_step.plan.copies:
            continue
        if (reason := why_worse(forecast.without_copies(), after, forecast.keeps_barriers)) is not None:
            remarks.append(Remark(function, f"{reason}: the plan is applied anyway", RemarkKind.ANALYSIS))
    return CarriedOut(cloned.steps, tuple(remarks))
