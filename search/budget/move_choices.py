"""Offloading as an alternative to saving and recomputing: a search under a budget tries several sets of values that may
be moved to the host, and takes the cheapest result within the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from ...analysis.step.step import Steps
from ...options.memory_model import ORDER
from ...planning.host_moves import Offload
from ...rules.costs.cost import cost_named
from ...support.counted import counted
from ...support.diagnostics import Refusal, Remark, RemarkKind
from ...support.interface import option
from ...transforms.offload import Moves
from ..limits import Budget
from ..outcome import RewriteResult
from ..plan_cost import plain_cost


def waits_for(moved: Moves, offload: Offload, steps: Steps) -> int:
    """Return the time that the step waits for moves, minus the time that the plans were charged for them, in the unit
    of the cost."""
    forward = sum(plain_cost(step, step.graph.forward) for _, step in steps)
    backward = sum(plain_cost(step, step.graph.gradient) for _, step in steps)
    return moved.waiting_time(offload.speed, forward, backward) - moved.cost(offload.assumed_speed)


def require_order_model(module: ModuleOp, offload: Offload, budget: Budget) -> None:
    """Raise `Refusal` if values may move to the host under the model `xla`, whose executor moves nothing."""
    if offload.offers and budget.model != ORDER:
        raise Refusal(
            module,
            f"host memory is counted in program order only: use {option('memory-model')}=order; "
            "the model xla describes XLA:CPU, which moves nothing",
        )


def cheapest_moves(module: ModuleOp, within: Callable[[Offload], RewriteResult], offload: Offload) -> RewriteResult:
    """Return the result within the budget with the least work. Marked moves alone are tried first, then offers of more
    and more values; ties go to fewer moves.

    Args:
        within: Rewrites the module within the budget, with the given options of offloading.

    Raises:
        Refusal: No set of values meets the budget; the refusal is the one for marked moves alone.
    """
    alone = _result_or_refusal(within, offload)
    results = [] if isinstance(alone, Refusal) else [alone]
    for variant in offload.variants():
        if results and results[-1].outcome.extra_cost == 0:
            break
        if not isinstance(result := _result_or_refusal(within, variant), Refusal):
            results.append(result)
    if not results:
        assert isinstance(alone, Refusal), "if there are no results, the first try failed"
        raise alone
    best = min(results, key=lambda variant: variant.outcome.extra_cost)
    remarks = (Remark(module, _summary(offload, best, alone), RemarkKind.ANALYSIS),) if offload.speed else ()
    return replace(best, budget_remarks=(*best.budget_remarks, *remarks))


def _result_or_refusal(within: Callable[[Offload], RewriteResult], offload: Offload) -> RewriteResult | Refusal:
    try:
        return within(offload)
    except Refusal as error:
        return error


def _summary(offload: Offload, best: RewriteResult, alone: RewriteResult | Refusal) -> str:
    """Summarize the moves for a remark. `alone`: the result with only the marked moves."""
    moved = best.outcome.moved_values
    cost = cost_named(offload.cost)
    if not moved:
        return "nothing is moved to the host: recomputing values costs less"
    extra = f"{best.outcome.extra_cost / cost.scale:.4g} {cost.unit}"
    verb, possessive = ("is", "its") if moved == 1 else ("are", "their")
    words = f"{counted(moved, 'value')} {verb} kept on the host until {possessive} gradient: {extra} more"
    if isinstance(alone, Refusal):
        return f"{words}, no plan found without moves that were not marked"
    reference = "with only the marked values" if alone.outcome.moved_values else "without moves"
    return f"{words}, {reference} {alone.outcome.extra_cost / cost.scale:.4g}"
