"""Rewrite every step of a module, with or without a budget, by running the stages in `stages.py`.

    rewrite_in_place      in place, for passes
    rewrite_module        a new module, within the budget of the options if they have one
    rewrite_within        a new module, within a given budget
    rewrite_unbudgeted    a new module, without a budget; a budget search measures its results

`rewrite_unbudgeted` repeats a rewrite in three cases: without copies, if copies lower no peak but loops were cut; with
functions inlined, if their calls cost memory; and with calls left in place, if foreign attributes of the calls would be
lost. `search/choice/vetoes.py` makes the first two decisions.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from ..dialects.names import Names
from ..options.loop_schedule import LoopSchedule
from ..options.recompute_options import DEFAULT_OPTIONS, Planner, RecomputeOptions
from ..planning.host_moves import Offload
from ..planning.plan import plan_nothing
from ..planning.plan_file import StepPlan
from ..planning.solvers.effort import NO_NUMBA_MESSAGE, PYTHON_SECONDS, is_compiled
from ..planning.solvers.result import Stop, never_stop
from ..search.budget.move_choices import cheapest_moves, require_order_model
from ..search.budget.within import rewrite_within_budget
from ..search.choice.vetoes import calls_may_raise_peak, why_calls_stay_inlined
from ..search.limits import Budget
from ..search.outcome import Recomputation, RewriteResult
from ..support.diagnostics import Refusal
from ..support.interrupts import stop_predicate
from ..support.timing import part
from ..transforms.calls.call_attributes import functions_with_attributes, keep_whole, remove_whole_marks
from ..transforms.outline_gradient import outline_gradient
from ..transforms.take_marks import take_marks, without_move_remarks
from ..transforms.verify import verify_input
from .emit import replace_content
from .stages import run_stages

_LOG = logging.getLogger("recompute.rewriting")


def rewrite_in_place(module: ModuleOp, options: RecomputeOptions = DEFAULT_OPTIONS) -> Recomputation:
    """Rewrite every step of the module in place, according to the options.

    The module stays unchanged if it already has copies, if nothing can be recomputed, or if the choice lowers no peak;
    a remark gives the reason.

    Raises:
        Refusal: There is no gradient, the marks, the selection or the plan do not apply to the module, no plan meets
            the budget, or the result violates an invariant.
        ValueError: The budget is invalid.
    """
    with part("verify"):
        verify_input(module)
    result = rewrite_module(module, options)
    if result.module is not None:
        replace_content(module, result.module)
    return result.outcome


def rewrite_module(module: ModuleOp, options: RecomputeOptions) -> RewriteResult:
    """Rewrite as `rewrite_in_place` does, but return a new module. The module must have been verified.

    With a budget, Ctrl-C or the time limit of the options ends the search with the best result so far. Without numba,
    the default time limit is `PYTHON_SECONDS`, and a warning is logged.
    """
    if options.budget is None:
        return rewrite_unbudgeted(module, options)
    budget = Budget.of(options.budget, options.memory_model, options.target)
    seconds = options.time_limit
    if seconds is None and not is_compiled():
        seconds = PYTHON_SECONDS
        _LOG.warning("%s", NO_NUMBA_MESSAGE.format(seconds=seconds))
    with stop_predicate(seconds) as stop:
        return rewrite_within(module, budget, options, stop)


def rewrite_within(
    module: ModuleOp, budget: Budget, options: RecomputeOptions = DEFAULT_OPTIONS, stop: Stop = never_stop
) -> RewriteResult:
    """Rewrite as `rewrite_module` does, within the given budget instead of the budget of the options.

    `stop`: a predicate that ends the search with the best result so far.

    Raises:
        Refusal: No plan meets the budget.
    """
    require_order_model(module, options.moves, budget)

    def within(offload: Offload) -> RewriteResult:
        moving = replace(options, offload=offload)

        def run(planned: Sequence[StepPlan] | Planner | None, loops: LoopSchedule) -> RewriteResult:
            return rewrite_unbudgeted(module, replace(moving.with_planned(planned), loops=loops))

        return rewrite_within_budget(module, budget, moving, run, stop)

    with keep_whole(module) as whole:
        best = cheapest_moves(module, within, options.moves)
    remove_whole_marks(best.module, whole)
    return replace(best, outcome=replace(best.outcome, remarks=(*best.outcome.remarks, *best.budget_remarks)))


def rewrite_unbudgeted(module: ModuleOp, options: RecomputeOptions) -> RewriteResult:
    """Rewrite as `rewrite_module` does, ignoring the budget of the options.

    Marks that are written as calls become attributes in the given module, which is not modified otherwise.

    If the rewrite raises `Refusal`, or cannot restore a call with foreign attributes, it runs again and leaves all
    calls with foreign attributes in place.
    """
    mark_remarks = without_move_remarks(take_marks(module).remarks, options.moves.marked)
    result = _best_or_refusal(module, options)
    if isinstance(result, Refusal) or result.outcome.restored_calls.lost:
        result = _rewrite_with_calls(module, options) or result
    if isinstance(result, Refusal):
        raise result
    return replace(result, outcome=replace(result.outcome, remarks=(*mark_remarks, *result.outcome.remarks)))


def _best_or_refusal(module: ModuleOp, options: RecomputeOptions) -> RewriteResult | Refusal:
    """Return the result of `_rewrite_or_alternative`, or the refusal that it raises."""
    try:
        return _rewrite_or_alternative(module, options)
    except Refusal as refusal:
        return refusal


def _rewrite_with_calls(module: ModuleOp, options: RecomputeOptions) -> RewriteResult | None:
    """Rewrite the module, leaving calls with foreign attributes in place; return None if there are no such calls, or if
    the rewrite raises `Refusal`."""
    if all(Names.WHOLE in function.attributes for function in functions_with_attributes(module)):
        return None
    with keep_whole(module) as marked:
        result = _best_or_refusal(module, options)
    if isinstance(result, Refusal):
        return None
    remove_whole_marks(result.module, marked)
    return result


def _rewrite_or_alternative(module: ModuleOp, options: RecomputeOptions) -> RewriteResult:
    """Rewrite the module, or return an alternative if it is better.

    One alternative, if copies lower no peak, is to rewrite only the loops. The other, if calls cost memory, is to leave
    functions inlined.
    """
    run = run_stages(module, options)
    if run.loops_alone_remarks is not None:
        options = options.with_planned(plan_nothing)
        remarks, run = run.loops_alone_remarks, run_stages(module, options)
        run = replace(run, outcome=replace(run.outcome, remarks=remarks))
    if run.module is None:
        return RewriteResult(None, run.outcome, options.loop_schedule)
    if run.peaks_without_calls and calls_may_raise_peak(run.module, run.peaks_without_calls):
        inlined = _rewrite_with_functions_inlined(module, options, run.module)
        if inlined is not None:
            return inlined
    if run.is_structured:
        outline_gradient(run.module)
    return RewriteResult(run.module, run.outcome, options.loop_schedule)


def _rewrite_with_functions_inlined(
    module: ModuleOp, options: RecomputeOptions, with_calls: ModuleOp
) -> RewriteResult | None:
    """Rewrite with functions inlined; return None if the result needs no less memory than `with_calls`."""
    run = run_stages(module, replace(options, calls=False))
    if run.module is None or (veto := why_calls_stay_inlined(with_calls, run.module)) is None:
        return None
    outcome = replace(run.outcome, remarks=(*run.outcome.remarks, veto))
    return RewriteResult(run.module, outcome, options.loop_schedule)
