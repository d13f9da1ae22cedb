"""Rewrite each step by its best candidate, or by given plans, and report the cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..analysis.copies.copying import refused
from ..analysis.memory.peaks import Forecast, Peaks
from ..analysis.step.exchanges import NOT_ALIKE, WITH_COLLECTIVES, why_not_again
from ..analysis.step.order import functions_of
from ..analysis.step.step import Step
from ..dialects.placements import is_offload
from ..options.recompute_options import RecomputeOptions
from ..planning.plan import Plan
from ..planning.plan_file import BadPlan, StepPlan, from_json
from ..rules.costs.cost import BadCost, Cost, cost_named
from ..rules.effects import Permission
from ..support.diagnostics import BadRequest, Remark, RemarkKind, Topic
from ..support.operations import name_of
from ..transforms.clone import Cloned, ClonedStep, clone_as_planned, clone_by, clone_marked
from ..transforms.mark import decision_remarks, write_marks
from ..transforms.phase import Steps
from ..transforms.plans.misfits import Misfits
from .budget.limits import Budget
from .choose import choose_for, why_worse

LEFT = "the step is left as it is"
REST_LEFT = "the rest of the step is left as it is"
REST = "in the rest of the step: "


def with_loops_cut(remarks: Sequence[Remark]) -> tuple[Remark, ...]:
    """Reword the remarks on a step whose loops have been cut already: only its rest is left unchanged."""
    return tuple(
        replace(remark, reason=remark.reason.removesuffix(LEFT) + REST_LEFT)
        if remark.topic is Topic.STEP_LEFT
        else remark
        for remark in remarks
    )


def step_left(op: Operation, reason: str) -> Remark:
    """Make the remark that the step is left unchanged."""
    return Remark(op, f"{reason}: {LEFT}", topic=Topic.STEP_LEFT)


def carry_out_best(module: ModuleOp, steps: Steps, options: RecomputeOptions, cut: bool) -> Cloned:
    """Rewrite each step by its best candidate. Raises `Refusal` if the selection does not fit.

    `cut`: whether loops of the module have been cut already."""
    selection, emission = options.selection, options.emission
    remarks_of, before, misfits, saving = dict[FuncOp, list[Remark]](), dict[str, Peaks](), Misfits(), None
    plans = {function: Plan() for function, _ in steps}
    for function, step in steps:
        choice = misfits.fitted(function, partial(choose_for, function, step, options))
        if choice is None:
            continue
        planned = choice.chosen.planned
        remarks = remarks_of[function] = list[Remark]()
        remarks.extend(decision_remarks(function, planned.decided, selection))
        if choice.refused is None:
            write_marks(planned.decided)
            plans[function] = planned.plan
            if emission.is_ordered and not cut and [function] == functions_of(module):
                saving = 1 - choice.chosen.peaks.xla / max(choice.before.xla, 1)
            remarks.extend(choice.remarks(function))
            if choice.is_free:
                if emission.is_ordered:
                    # The peak under XLA before the change may be read after the step has changed.
                    choice.forecast.read()
                before[function.sym_name.data] = choice.before
        else:
            remarks.append(step_left(function, choice.refused))
        if not plans[function].copies:
            remarks.extend(_exchanges(step, selection.permission))
    misfits.refuse()
    cloned = clone_marked(module, steps, lambda function, _: plans[function], selection.permission)
    inside = cut or any(plan.copies for plan in plans.values())
    per_step = [
        some if plans[function].copies or not inside else _of_rest(some) for function, some in remarks_of.items()
    ]
    return replace(cloned, remarks=(*chain(*per_step), *cloned.remarks), before=before, saving=saving)


def _of_rest(remarks: Sequence[Remark]) -> list[Remark]:
    """Reword the remarks on an unchanged step of a module in which another step, or a loop, is rewritten."""
    return [replace(remark, reason=f"{REST}{remark.reason}") for remark in with_loops_cut(remarks)]


def _exchanges(step: Step, permission: Permission) -> Iterator[Remark]:
    """Yield a remark for each reason why operations with collectives are not recomputed."""
    reported = set[str]()
    for number in sorted(refused(step, permission)):
        op = step.operation(number)
        reason = why_not_again(op, permission)
        if reason in (WITH_COLLECTIVES, NOT_ALIKE) and reason not in reported:
            reported.add(reason)
            yield Remark(op, f"{name_of(op)} is not recomputed: {reason}", topic=Topic.COLLECTIVES)


def carry_out_planned(module: ModuleOp, steps: Steps, options: RecomputeOptions) -> Cloned:
    """Rewrite each step by the plan or the planner of the options, with a remark on steps whose peak it does
    not lower."""
    planned, permission = options.planned, options.selection.permission
    assert planned is not None, "the options have a plan or a planner"
    forecasts = [Forecast.of(function, step, options.emission).read() for function, step in steps]
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
            and (reason := why_worse(forecast.without_copies(), after, forecast.ordered)) is not None
        ):
            remarks.append(Remark(function, f"{reason}: the plan is carried out anyway", RemarkKind.ANALYSIS))
    return replace(cloned, remarks=tuple(remarks))


def options_of_pass(module: ModuleOp, options: ModulePass) -> RecomputeOptions:
    """Validate the options of a pass. Raises `Refusal` at the module for options that are invalid or contradict one
    another."""
    try:
        parsed = RecomputeOptions.of_pass(options)
        if parsed.budget is not None:
            Budget.of(parsed.budget, parsed.memory_model, parsed.target)
        return parsed
    except ValueError as error:
        raise BadRequest(module, str(error)) from error


def read_plan(module: ModuleOp, path: str) -> tuple[StepPlan, ...]:
    """Read a plan file. Raises `Refusal` at the module if the file cannot be read or holds no plan."""
    try:
        return from_json(Path(path).read_text())
    except OSError as error:
        raise BadRequest(module, f"the plan {path} cannot be read: {error.strerror}") from error
    except (BadPlan, UnicodeDecodeError) as error:
        raise BadRequest(module, f"{path}: {error}") from error


def cost_option(module: ModuleOp, text: str) -> Cost:
    """Look up a cost by name or file. Raises `Refusal` at the module for an unknown one."""
    try:
        return cost_named(text)
    except BadCost as error:
        raise BadRequest(module, str(error)) from error


def cost_remarks(steps: Steps, cloned: Iterable[ClonedStep], cost: Cost) -> Iterator[Remark]:
    """Yield the extra cost of each step as a remark, unless the cost is the default, FLOPs. Call this before the steps
    are changed."""
    functions = {function.sym_name.data: function for function, _ in steps}
    costs = {function.sym_name.data: _without_moves(step) for function, step in steps}
    for clone_of_step in cloned if not cost.is_default else ():
        each = costs[clone_of_step.function]
        total, extra = sum(each), clone_of_step.plan.extra_cost(each)
        share = f", {extra / total:.2%} of the step's" if total else ""
        yield Remark(
            functions[clone_of_step.function],
            f"cost by {cost.name}: {extra / cost.scale:.4g} {cost.unit} again{share}",
            RemarkKind.ANALYSIS,
        )


def plain_cost(step: Step, which: Sequence[bool]) -> int:
    """Sum the cost of the operations for which `which` is true, without moves."""
    return sum(cost for cost, counts in zip(_without_moves(step), which, strict=True) if counts)


def _without_moves(step: Step) -> Sequence[int]:
    """Return the cost of each operation in the plain step; an offered move to the host costs nothing."""
    costs = zip(step.numbered.operations, step.graph.cost, strict=True)
    return [0 if is_offload(op) else cost for op, cost in costs]
