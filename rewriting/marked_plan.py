"""Find marks for `recompute-plan` from which `recompute-clone` derives a plan within the budget.

A plan may copy an operation several times, and choose the place of each copy. Marks only select operations, and
`recompute-clone` derives the copies from them (`plan_of_marks` in `analysis/copies/copying.py`). The derived plan may
therefore need more memory than the plan of the search:

    plan of the search      marks of its operations -> derived plan -> rewritten module -> peak within the budget?
    if not                  the same for other candidates of the search, until one is within the budget

`search/budget/markable_plan.py` chooses the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from ..analysis.copies.copying import CloneOptions, plan_of_marks, refused_marks
from ..analysis.step.module_steps import numbered_steps
from ..analysis.step.step import Step
from ..dialects.names import Names
from ..dialects.result_marks import decided_mark
from ..options.loop_schedule import LoopSchedule
from ..options.recompute_options import Planner, RecomputeOptions
from ..planning.plan_file import StepPlan
from ..search.budget.budget_problem import BudgetProblem
from ..search.budget.markable_plan import MarkableResult, markable_result
from ..search.limits import Budget, budget_limits
from ..search.outcome import RewriteResult
from ..search.prepare import prepare
from ..support.counted import counted_are
from ..support.interrupts import stop_predicate
from ..support.remarks import Remark, RemarkKind
from ..support.units import format_bytes
from ..transforms.plans.kept_dependents import keep_dependents
from ..transforms.plans.notes import write_notes
from .rewrite import run_with_alternatives

REMEDY = "the pass recompute with the same budget, or with a plan file, applies the plan itself"


@dataclass(frozen=True)
class MarkedPlan:
    """Plans whose operations are marked.

    Attributes:
        plans: The plans of the steps.
        remark: A remark with the peak of the plan that `recompute-clone` derives from the marks; None if this plan is
            as good as the plan of the search.
    """

    plans: tuple[StepPlan, ...]
    remark: Remark | None = None


def write_plan_marks(step: Step, plan: StepPlan) -> None:
    """Mark the operations that a plan copies, and keep their dependents."""
    write_notes(step, plan.notes)
    for op in {op for group in plan.plan.groups for op in group.operations}:
        step.operation(op).attributes[Names.RECOMPUTE] = decided_mark([True])
    keep_dependents(step, ())


def plan_to_mark(module: ModuleOp, options: RecomputeOptions, searched: RewriteResult) -> MarkedPlan:
    """Return the plans to mark in a module: the plans of the search if their marks lead to a plan within the budget,
    otherwise the plans of a different candidate.

    Args:
        module: The module.
        options: The options of the search, with its budget, and with the loop schedule and the moves of its result.
        searched: The result of the search.
    """
    assert options.budget is not None
    budget = Budget.of(options.budget, options.memory_model, options.target)
    sources = list[tuple[RewriteResult, tuple[StepPlan, ...]]]()

    def run(planned: Sequence[StepPlan] | Planner | None, loops: LoopSchedule) -> RewriteResult:
        with_loops = replace(options, loops=loops)
        plans = run_with_alternatives(module, with_loops.with_planned(planned)).outcome.plans
        derived = _derived_plans(module, with_loops, plans)
        result = run_with_alternatives(module, with_loops.with_planned(derived))
        sources.append((result, plans))
        return result

    with stop_predicate(options.time_limit) as stop:
        limits = budget_limits(module, budget)
        problem = BudgetProblem(module=module, budget=budget, run=run, limits=limits, options=options, stop=stop)
        chosen = markable_result(problem, searched)
    if chosen is None:
        return MarkedPlan(searched.outcome.plans)
    plans = next(plans for result, plans in sources if result.outcome is chosen.result.outcome)
    return MarkedPlan(plans, None if chosen.is_as_good else _remark(problem, chosen))


def _derived_plans(module: ModuleOp, options: RecomputeOptions, plans: Sequence[StepPlan]) -> tuple[StepPlan, ...]:
    """Return the plans that `recompute-clone` derives from marks on the operations that the given plans copy."""
    prepared = prepare(module, options)
    permission = options.selection.permission
    of_function: Mapping[str, StepPlan] = {plan.function: plan for plan in plans}
    derived = list[StepPlan]()
    for function, step in numbered_steps(prepared.module):
        step_plan = of_function[function.sym_name.data]
        write_plan_marks(step, step_plan)
        for op, _ in list(refused_marks(step, permission)):
            del op.attributes[Names.RECOMPUTE]
        derived.append(replace(step_plan, plan=plan_of_marks(step, CloneOptions(permission=permission))))
    return tuple(derived)


def _remark(problem: BudgetProblem, chosen: MarkableResult) -> Remark:
    """Return a remark with the peak of the plan that results from the marks."""
    before, marked, outcome = problem.limits.plain_bytes, chosen.result, chosen.result.outcome
    peaks = ", ".join(f"{format_bytes(before[name])} -> {format_bytes(marked.peaks[name])}" for name in before)
    if chosen.is_met:
        verdict = "the marks stay within the budget, but with another plan"
    elif problem.limits.limit_bytes is None:
        verdict = "the marks need more memory than the plan"
    else:
        verdict = f"the marks exceed the budget {problem.wording}"
    return Remark(
        problem.report_location,
        f"{verdict}, since marks cannot state how often or where an operation is copied: with recompute-clone, {peaks} "
        f"at the peak {problem.budget.model_phrase}; {counted_are(outcome.copies, 'operation')} recomputed, "
        f"{outcome.extra_flops} FLOPs more; {REMEDY}",
        RemarkKind.ANALYSIS if chosen.is_met else RemarkKind.MISSED,
        amounts=(
            ("peak_bytes_before", max(before.values(), default=0)),
            ("peak_bytes_after", max(marked.peaks.values(), default=0)),
            ("operations", outcome.copies),
            ("flops", outcome.extra_flops),
        ),
    )
