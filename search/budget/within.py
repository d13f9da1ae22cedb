"""Rewrite a module within a memory budget: plan, rewrite, measure, and re-plan if necessary.

In program order (`program_order.py`), the solvers plan with proven bounds. XLA:CPU runs a program in a different order.
Therefore, the XLA:CPU model forecasts plans of all kinds. The plans that are predicted to fit are applied in order of
increasing cost, until a rewritten step fits. Before a refusal and for `min`, the choice that is made without a budget
is also tried, so that a budget that this choice meets is never refused. A search for `min` ends with searches for
budgets slightly below its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from ...options.loop_schedule import UNCUT
from ...options.memory_model import ORDER
from ...options.recompute_options import RecomputeOptions
from ...planning.plan import plan_nothing
from ...planning.solvers.result import Stop
from ...support.counted import counted, counted_are
from ...support.diagnostics import Refusal
from ...support.remarks import Remark, RemarkKind
from ...support.units import format_bytes, readable_bytes
from ..candidate_plans.pool import ModuleCandidate
from ..candidate_plans.pool_cache import pool_of
from ..limits import MODEL_ERROR, Budget, BudgetLimits, budget_limits
from ..loop_choices import has_loops
from ..outcome import RewriteResult
from .budget_problem import BudgetProblem, RunRewrite
from .program_order import search_in_program_order
from .rounds import Rounds

MAX_REWRITES = 6
"""Maximum number of candidates in a search under the XLA:CPU model. Each candidate costs a rewrite and a run of the
model. Beyond the limit, the best result so far is returned, or the budget is refused."""
LOWER_SHARE = 0.97
"""After a search for `min`, budgets of this share of the lowest peak are searched while they are met. The pool plans
smaller variants of its candidates only for a budget, because a limit decides which variants are promising."""
MAX_LOWER_LIMITS = 3
"""Maximum number of budgets that are searched after a search for `min`."""
REWRITES_PER_LIMIT = 2
"""Maximum number of candidates that are measured for each of these budgets."""


def search_by_model(problem: BudgetProblem) -> RewriteResult:
    """Find the cheapest rewrite within the budget under the XLA:CPU model. Raises `Refusal` if none is found."""
    limits = problem.limits

    def measure(candidate: ModuleCandidate, _: float) -> tuple[float, RewriteResult] | None:
        try:
            result = problem.evaluate(candidate.plans, candidate.loops)
        except Refusal:
            return None
        return limits.largest_ratio(result.peaks), result

    pool = pool_of(problem.module, problem.options, problem.stop)
    limit, plain_needs = None if limits.limit_bytes is None else 1.0, (1.0, limits.largest_ratio(limits.plain_bytes))
    rounds = Rounds(
        pool=pool, limit=limit, plain_needs=plain_needs, measure=measure, stop=problem.stop, is_over=problem.stop
    )
    best = rounds.best(MAX_REWRITES)
    if best is not None and limits.limit_bytes is None:
        best = _result_below(rounds, best, limits)
    if best is not None and (limits.limit_bytes is not None or problem.stop()):
        return best
    reached = [*rounds.results.values()]
    with suppress(Refusal):
        ordinary = problem.evaluate(None)
        # For `min`, the unchanged step may be the best result.
        if ordinary.module is not None or best is not None:
            reached.append(ordinary)
    smallest = min(reached, key=lambda result: limits.largest_ratio(result.peaks), default=None)
    if smallest is None or not (limits.limit_bytes is None or problem.is_within_budget(smallest)):
        raise Refusal(problem.report_location, _infeasible_reason(problem, [result.peaks for result in reached]))
    return smallest


def _result_below(
    rounds: Rounds[ModuleCandidate, RewriteResult], best: RewriteResult, limits: BudgetLimits
) -> RewriteResult:
    """Return the result of the last budget that is met, where each budget is slightly below the preceding result;
    `best`, the result to begin with, if the first budget is not met."""
    for _ in range(MAX_LOWER_LIMITS):
        if rounds.stop():
            break
        limit = LOWER_SHARE * limits.largest_ratio(best.peaks)
        lower = replace(rounds, limit=limit, extra_candidates=0).best(REWRITES_PER_LIMIT)
        if lower is None:
            break
        best = lower
    return best


def _infeasible_reason(problem: BudgetProblem, reached: Sequence[Mapping[str, int]]) -> str:
    words = f"no plan is within the budget {problem.refused_wording}"
    if not reached:
        return f"{words}: nothing can be recomputed"
    smallest = min(reached, key=problem.limits.largest_ratio)
    needed = ", ".join(readable_bytes(smallest[name]) for name in problem.limits.plain_bytes)
    best = f"the best of {counted(len(reached), 'candidate')} needs {needed}"
    return f"{words}: {best}; no lower bound is known; {problem.counted_values}; the model gives {MODEL_ERROR}"


def cheapest_within_budget(
    module: ModuleOp, budget: Budget, options: RecomputeOptions, run: RunRewrite, stop: Stop
) -> RewriteResult:
    """Return the cheapest rewrite within the budget that the search finds.

    Args:
        run: A function that rewrites the module. It must leave `module` itself unchanged.
        stop: A predicate that ends the search with the best result so far.

    Raises:
        Refusal: If no plan is within the budget. The reason contains the minimum if it is proved.
    """
    limits = budget_limits(module, budget)
    problem = BudgetProblem(module=module, budget=budget, run=run, limits=limits, options=options, stop=stop)
    if limits.is_within_budget:
        if not options.selection.segment_budgets:
            return _left_unchanged(problem)
        if problem.is_within_budget(alone := problem.evaluate(None)):
            return _with_remark(problem, alone)
    return _with_remark(
        problem, search_in_program_order(problem) if budget.model == ORDER else search_by_model(problem)
    )


def _left_unchanged(problem: BudgetProblem) -> RewriteResult:
    result = problem.evaluate(plan_nothing, UNCUT)
    needed = ", ".join(map(readable_bytes, problem.limits.plain_bytes.values()))
    peak = f"the step needs {needed} at its peak {problem.budget.model_phrase}"
    text = f"no recomputation is needed: {peak}, within the budget {problem.wording}"
    return replace(result, module=None).with_remarks(_remark(problem, text))


def _with_remark(problem: BudgetProblem, result: RewriteResult) -> RewriteResult:
    """Return the result with the remark that the budget is met."""
    before, after = problem.limits.plain_bytes, result.peaks
    peaks = ", ".join(f"{format_bytes(before[name])} -> {format_bytes(after[name])}" for name in before)
    extra = f"{counted_are(result.outcome.copies, 'operation')} recomputed, {result.outcome.extra_flops} FLOPs more"
    # If there are no loops to cut, a schedule has no effect.
    is_other = result.loops != problem.options.loop_schedule and has_loops(problem.module)
    loops = f", with {result.loops.pass_option}" if is_other else ""
    text = f"budget {problem.wording}: {peaks} at the peak {problem.budget.model_phrase}; {extra}{loops}"
    amounts = (
        ("peak_bytes_before", max(before.values(), default=0)),
        ("peak_bytes_after", max(after.values(), default=0)),
        ("operations", result.outcome.copies),
        ("flops", result.outcome.extra_flops),
    )
    remark = replace(_remark(problem, text, RemarkKind.PASSED), amounts=amounts)
    if problem.budget.model == ORDER:
        return result.with_remarks(remark)
    # A remark of its own, so that it is printed once, with the number of repetitions.
    error = _remark(problem, f"the XLA:CPU model gives {MODEL_ERROR}", RemarkKind.ANALYSIS)
    return result.with_remarks(remark, error)


def _remark(problem: BudgetProblem, text: str, kind: RemarkKind = RemarkKind.MISSED) -> Remark:
    return Remark(problem.report_location, text, kind)
