"""Rewrite within a memory budget: plan, rewrite, measure, and plan again.

In program order (`program_order.py`) the solvers plan with proven bounds. XLA:CPU runs a program in another order, so
plans of all kinds are forecast by its model, and the cheapest plans that are predicted to fit are rewritten until one
of them fits. The choice without a budget is taken if it fits and is cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic

from xdsl.dialects.builtin import ModuleOp

from ...options.loop_schedule import UNCUT, LoopSchedule
from ...options.memory_model import ORDER
from ...options.recompute_options import RecomputeOptions
from ...planning.plan import plan_nothing
from ...planning.solvers.result import Stop
from ...support.diagnostics import Refusal, Remark, RemarkKind
from ...support.units import format_bytes, readable_bytes
from ..pool import ModuleCandidate
from ..pool_cache import pool_of
from .budget_problem import BudgetProblem, Evaluated, O, RunRewrite
from .limits import MODEL_ERROR, Budget, budget_limits
from .loop_choices import has_loops
from .program_order import in_program_order
from .rounds import Rounds

MAX_REWRITES = 6
"""Maximum number of rewrites in a search by the model of XLA:CPU."""


def by_model(problem: BudgetProblem[O]) -> Evaluated[O]:
    """Find the cheapest rewrite within the budget under the model of XLA:CPU. Raises `Refusal`."""
    limits = problem.limits

    def measure(candidate: ModuleCandidate, _: float) -> tuple[float, Evaluated[O]] | None:
        try:
            written = problem.evaluate(candidate.plans, candidate.loops)
        except Refusal:
            return None
        return limits.share(written.peaks), written

    pool = pool_of(problem.module, problem.options, problem.stop)
    limit, plain = None if limits.bytes is None else 1.0, (1.0, limits.share(limits.plain))
    rounds = Rounds(pool, limit, plain, measure, problem.stop, problem.stop)
    best = rounds.best(MAX_REWRITES)
    if best is None:
        raise Refusal(
            problem.place, _infeasible_reason(problem, [written.peaks for written in rounds.results.values()])
        )
    return best


def _infeasible_reason(problem: BudgetProblem[O], reached: Sequence[Mapping[str, int]]) -> str:
    words = f"no plan keeps the budget {problem.wording} {problem.budget.by}"
    if not reached:
        return f"{words}: nothing can be recomputed"
    least = min(reached, key=problem.limits.share)
    needed = ", ".join(readable_bytes(least[name]) for name in problem.limits.plain)
    best = f"the best of {len(reached)} candidates needs {needed}"
    return f"{words}: {best}; no lower bound is known; bytes are by the model, {MODEL_ERROR}"


@dataclass(frozen=True)
class BudgetResult(Generic[O]):
    """The result of a rewrite within a budget.

    Attributes:
        module: The new module; None if the step stays unchanged.
        outcome: The outcome of the rewrite.
        peaks: The peak of each function in bytes.
        remarks: A remark on the budget.
        loops: The loop schedule that the plans were made for.
    """

    module: ModuleOp | None
    outcome: O
    peaks: Mapping[str, int]
    remarks: tuple[Remark, ...]
    loops: LoopSchedule


def within_budget(
    module: ModuleOp, budget: Budget, options: RecomputeOptions, run: RunRewrite[O], stop: Stop
) -> BudgetResult[O]:
    """Rewrite the module within the budget.

    Args:
        run: Rewrites the module, which it must leave unchanged.
        stop: Ends the search with the best result so far.

    Raises:
        Refusal: If no plan keeps the budget, with the minimum if it is proven.
    """
    limits = budget_limits(module, budget)
    problem = BudgetProblem(module, budget, run, limits, options, stop)
    if limits.is_kept:
        if not options.selection.segment_budgets:
            return _nothing(problem)
        if problem.is_kept(alone := problem.evaluate(None)):
            return BudgetResult(
                alone.module, alone.outcome, alone.peaks, (_remark_on_success(problem, alone),), alone.loops
            )
    result = in_program_order(problem) if budget.model == ORDER else by_model(problem)
    return BudgetResult(
        result.module, result.outcome, result.peaks, (_remark_on_success(problem, result),), result.loops
    )


def _nothing(problem: BudgetProblem[O]) -> BudgetResult[O]:
    result = problem.evaluate(plan_nothing, UNCUT)
    needed = ", ".join(map(readable_bytes, problem.limits.plain.values()))
    peak = f"the step needs {needed} at its peak {problem.budget.by}"
    text = f"no recomputation is needed: {peak}, within the budget {problem.wording}"
    return BudgetResult(None, result.outcome, result.peaks, (_remark(problem, text),), UNCUT)


def _remark_on_success(problem: BudgetProblem[O], result: Evaluated[O]) -> Remark:
    before, after = problem.limits.plain, result.peaks
    peaks = ", ".join(f"{format_bytes(before[name])} -> {format_bytes(after[name])}" for name in before)
    model = problem.budget.by if problem.budget.model == ORDER else f"{problem.budget.by}, {MODEL_ERROR}"
    extra = f"{result.outcome.copies} operations run again, {result.outcome.extra_flops} FLOPs more"
    # Without loops to cut, a schedule means nothing.
    is_other = result.loops != problem.options.loop_schedule and has_loops(problem.module)
    loops = f", with {result.loops.pass_option}" if is_other else ""
    text = f"budget {problem.wording}: {peaks} at the peak {model}; {extra}{loops}"
    amounts = (
        ("peak_bytes_before", max(before.values(), default=0)),
        ("peak_bytes_after", max(after.values(), default=0)),
        ("operations", result.outcome.copies),
        ("flops", result.outcome.extra_flops),
    )
    return replace(_remark(problem, text, RemarkKind.PASSED), amounts=amounts)


def _remark(problem: BudgetProblem[O], text: str, kind: RemarkKind = RemarkKind.MISSED) -> Remark:
    return Remark(problem.place, text, kind)
