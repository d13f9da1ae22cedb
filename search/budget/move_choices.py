"""Choose values to offload, as an alternative to saving and recomputing. A search under a budget tries several sets of
values that may be moved to the host, and selects the cheapest result within the budget."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp

from ...analysis.step.step import Steps
from ...options.memory_model import ORDER
from ...planning.host_moves import Moves, Offload
from ...rules.costs.cost import cost_named
from ...support.counted import counted
from ...support.diagnostics import Refusal
from ...support.interface import option
from ...support.remarks import Remark, RemarkKind
from ..limits import Budget
from ..outcome import RewriteResult
from ..plan_cost import plain_cost


def uncharged_wait(moved: Moves, offload: Offload, steps: Steps) -> int:
    """Return the time that the step waits for moves, minus the time for which the plans were charged, in the unit of
    the cost. The result is negative if the plans were charged for more time than the step waits."""
    forward = sum(plain_cost(step, step.graph.forward) for _, step in steps)
    backward = sum(plain_cost(step, step.graph.gradient) for _, step in steps)
    return moved.waiting_time(offload.speed, forward, backward) - moved.cost(offload.assumed_speed)


def require_order_model(module: ModuleOp, offload: Offload, budget: Budget) -> None:
    """Raise `Refusal` if values may move to the host and the memory model is `xla`, because XLA:CPU moves nothing."""
    if offload.offers and budget.model != ORDER:
        raise Refusal(
            module,
            f"host memory is counted only in program order: use {option('memory-model')}=order; "
            "the model xla describes XLA:CPU, which moves nothing",
        )


def cheapest_moves(module: ModuleOp, within: Callable[[Offload], RewriteResult], offload: Offload) -> RewriteResult:
    """Return the result within the budget with the lowest extra cost. Only the marked values are moved at first, then
    more and more values may be moved. Ties go to the result with fewer moves.

    Args:
        within: A function that rewrites the module within the budget, with the given options of offloading.

    Raises:
        Refusal: If no set of values meets the budget. The refusal refers to moving only the marked values.
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
    if not offload.speed:
        return best
    return best.with_remarks(Remark(module, _summary(offload, best, alone), RemarkKind.ANALYSIS))


def _result_or_refusal(within: Callable[[Offload], RewriteResult], offload: Offload) -> RewriteResult | Refusal:
    try:
        return within(offload)
    except Refusal as error:
        return error


def _summary(offload: Offload, best: RewriteResult, alone: RewriteResult | Refusal) -> str:
    """Return the text of a remark that summarizes the moves. `alone`: the result of the attempt that moves only the
    marked values, or its refusal."""
    moved = best.outcome.moves.values
    cost = cost_named(offload.cost)
    if not moved:
        return "nothing is moved to the host: recomputing values costs less"
    extra = f"{best.outcome.extra_cost / cost.scale:.4g} {cost.unit}"
    verb, possessive = ("is", "its") if moved == 1 else ("are", "their")
    stay = f"{counted(moved, 'value')} {verb} kept on the host until {possessive} gradient operations run"
    words = f"{stay}, at an extra cost of {extra}"
    if isinstance(alone, Refusal):
        return f"{words}; with only the marked values moved, no plan was found"
    reference = "with only the marked values moved" if alone.outcome.moves.values else "without moves"
    return f"{words}; {reference}, the extra cost is {alone.outcome.extra_cost / cost.scale:.4g} {cost.unit}"
