"""Rewrite a step within a budget in program order, or with the lowest peak.

The search considers only the peak of temporaries. A budget also covers the gradients of the results, which PyTorch
holds, and the generator states that copies restore. This module lowers the budget of the search by the bytes of both.
"""

from __future__ import annotations

from dataclasses import replace

from ....options.recompute_options import RecomputeOptions
from ....search.limits import bytes_left
from ....support.diagnostics import Refusal
from ....support.units import MINIMUM, is_share, readable_bytes
from .joint_graph_step import JointStep
from .options import Options
from .plan_cache import PlanCache
from .rewritten_step import RewrittenStep

MAX_TIGHTENED = 6
"""The maximum number of budgets to try below the lowest peak so far."""
FIRST_TIGHTENED, LAST_TIGHTENED = 0.93, 0.99
"""The first and the highest budget to try, as shares of the lowest peak so far.

A higher budget would lower the peak by less than one percent.
"""
MAX_LOWERED = 4
"""The maximum number of plans for a budget.

The limit of each further plan is lowered by the bytes by which the previous plan exceeded the budget because of
generator states.
"""
_STATES_EXCEED = "because of the generator states that copies restore, every plan that was tried exceeds the budget"


def rewrite(step: JointStep, options: Options) -> RewrittenStep:
    """Rewrite the step, with a cached plan of an earlier process if there is one. Raises `Refusal`."""
    cache = PlanCache.of(lambda: step.text, options)
    if (stored := cache.get()) is not None:
        rewritten = RewrittenStep.of_stored(step.module, options.rewrite, stored)
        if rewritten is not None:
            return rewritten
    rewritten = rewrite_within(step, options)
    cache.put(rewritten.stored_plan)
    return rewritten


def smallest_rewrite(step: JointStep, options: RecomputeOptions) -> RewrittenStep:
    """Return the rewrite with the lowest peak. Only the first call for a step searches; later calls return the same
    rewrite. Raises `Refusal`."""
    for_minimum = Options(replace(options, budget=MINIMUM))
    key = repr(for_minimum)
    if key not in step.smallest_rewrites:
        step.smallest_rewrites[key] = rewrite(step, for_minimum)
    return step.smallest_rewrites[key]


def rewrite_within(step: JointStep, options: Options) -> RewrittenStep:
    """Rewrite the step within the budget. Raises `Refusal`.

    The peak that a budget limits includes tangents, although they are arguments of the step.
    """
    if options.budget == MINIMUM:
        return _with_lowest_peak(step, options.rewrite)
    if options.budget is None:
        return RewrittenStep.of(step.module, options.rewrite)
    plain = step.peak
    limit = _limit(options.budget, step)
    chosen = options.rewrite
    if is_share(options.budget) and step.tangent_bytes:
        chosen = replace(chosen, budget=f"{limit + plain.argument_bytes}B")
    bound = limit
    try:
        for _ in range(MAX_LOWERED):
            within = RewrittenStep.of(step.module, chosen)
            over = within.peak_bytes - limit
            if over <= 0:
                return within
            bound = max(0, min(bound, within.peak.temporary_bytes) - over)
            chosen = replace(chosen, budget=f"{bound + plain.argument_bytes}B")
    except Refusal as error:
        return _smallest_within(step, options.rewrite, limit, error)
    return _smallest_within(step, options.rewrite, limit, Refusal(step.module, _STATES_EXCEED))


def _smallest_within(step: JointStep, options: RecomputeOptions, limit: int, error: Refusal) -> RewrittenStep:
    """Return the rewrite with the lowest peak, after the search has refused a budget.

    If this peak exceeds the limit, raise a `Refusal` that gives the reason in `error` and this peak.
    """
    try:
        smallest = smallest_rewrite(step, options)
    except Refusal:
        raise error from None
    if smallest.peak_bytes <= limit:
        return smallest
    reached = smallest.peak_bytes + step.tangent_bytes
    words = f"the lowest peak of any plan is {readable_bytes(reached)} in addition to weights and inputs"
    raise Refusal(error.operation, f"{error.reason}; {words}") from error


def _with_lowest_peak(step: JointStep, options: RecomputeOptions) -> RewrittenStep:
    """Return the rewrite with the lowest peak that is found: first with the solvers and a plan by segments, then by a
    bisection over lower budgets.

    Raises `Refusal` if the solvers and the plan by segments are both refused.
    """
    within, refused = list[RewrittenStep](), list[Refusal]()
    for each in (options, replace(options, budget=None)):
        try:
            within.append(RewrittenStep.of(step.module, each))
        except Refusal as error:
            refused.append(error)
    if not within:
        raise refused[0]
    return _tighten(step, options, min(within, key=lambda rewritten: rewritten.peak_bytes))


def _tighten(step: JointStep, options: RecomputeOptions, best: RewrittenStep) -> RewrittenStep:
    """Search by bisection for a rewrite with a lower peak than `best`. Return the best rewrite.

    Each budget lies between the highest refused budget and the lowest peak of a rewritten program, which may exceed the
    peak of its plan, for instance because of generator states.
    """
    highest_refused = 0
    for _ in range(MAX_TIGHTENED):
        budget = max(int(FIRST_TIGHTENED * best.peak_bytes), (highest_refused + best.peak_bytes) // 2)
        if budget > LAST_TIGHTENED * best.peak_bytes:
            break
        try:
            tighter = RewrittenStep.of(step.module, replace(options, budget=f"{budget + step.peak.argument_bytes}B"))
        except Refusal:
            highest_refused = budget
            continue
        if tighter.peak_bytes >= best.peak_bytes:
            break
        best = tighter
    return best


def _limit(budget: str, step: JointStep) -> int:
    """Return the bytes that a budget other than `min` leaves for temporaries.

    A share refers to the temporaries and the gradients of the results.
    """
    tangent_bytes = step.tangent_bytes
    limit = bytes_left(budget, step.peak.temporary_bytes + tangent_bytes, step.peak.argument_bytes - tangent_bytes)
    assert limit is not None, "the caller handles the budget `min`"
    return limit - tangent_bytes
