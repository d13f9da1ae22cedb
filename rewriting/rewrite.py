"""Rewrite every step of a module, with or without a budget, by running the stages in `stages.py`.

    rewrite_in_place           for passes: verifies the module, and replaces its content with the rewritten copy
    rewritten_copy             a new module, within the budget of the options if they have one
    search_within              a new module, within a given budget; measures results of `run_with_alternatives`
    run_with_alternatives      a new module, without a budget: the best result of the runs below
    run_stages (`stages.py`)   the result of one run

Runs with different options follow in this order, if they may be better. `search/choice/alternatives.py` compares the
results:

    run                 if                                                   replaces the result before it
    branches joined     there are several conditionals                       if its peak is lower
    loops alone         copies lower no peak, but loops were cut             always
    functions inlined   restored calls may raise a peak                      if restored calls do raise one
    calls in place      the runs above are refused, or foreign attributes    unless this run is also refused
                        of calls are lost
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from ..analysis.forecasts.peaks import PeakChange
from ..options.loop_schedule import LoopSchedule
from ..options.memory_model import ORDER
from ..options.recompute_options import DEFAULT_OPTIONS, Planner, RecomputeOptions
from ..planning.host_moves import Offload
from ..planning.plan import plan_nothing
from ..planning.plan_file import StepPlan
from ..planning.solvers.effort import default_seconds
from ..planning.solvers.result import Stop, never_stop
from ..search.budget.move_choices import cheapest_moves, require_order_model
from ..search.budget.within import cheapest_within_budget
from ..search.choice.alternatives import (
    Alternative,
    is_better_with_joined_branches,
    loops_alone,
    may_be_better_with_calls_in_place,
    unless_calls_raise_peak,
)
from ..search.limits import Budget
from ..search.outcome import Recomputation, RewriteResult
from ..support.diagnostics import DynamicShape, Refusal
from ..support.interrupts import stop_predicate
from ..support.timing import part
from ..transforms.calls.call_attributes import keep_whole, remove_whole_marks
from ..transforms.preparation.timelines import peaks_of
from ..transforms.rolled.joined_branches import has_several_conditionals
from ..transforms.rolled.merge_copied_branches import merge_copied_branches
from ..transforms.take_marks import take_marks, without_move_remarks
from ..transforms.verify import verify_input
from .stages import run_stages

_LOG = logging.getLogger("recompute.rewriting")


def rewrite_in_place(module: ModuleOp, options: RecomputeOptions = DEFAULT_OPTIONS) -> Recomputation:
    """Rewrite every step of the module in place, according to the options.

    The module stays unchanged if it already has copies, if nothing can be recomputed, or if the choice lowers no peak;
    a remark gives the reason.

    Raises:
        Refusal: The module has no gradient; the marks, the selection or the plan do not apply to the module; no plan
            meets the budget; or the result violates an invariant.
        ValueError: The budget is invalid.
    """
    with part("verify"):
        verify_input(module)
    result = rewritten_copy(module, options)
    if result.module is None:
        return result.outcome
    outcome = result.outcome
    if options.budget is None and not outcome.peak_changes:
        outcome = replace(outcome, peak_changes=_peak_changes(module, result.module))
    replace_content(module, result.module)
    return outcome


def _peak_changes(module: ModuleOp, rewritten: ModuleOp) -> Mapping[str, PeakChange]:
    """Return the peak in program order of each function before and after a rewrite; empty if shapes are dynamic."""
    with suppress(DynamicShape):
        before, after = peaks_of(module, ORDER), peaks_of(rewritten, ORDER)
        return {name: PeakChange((before[name], peak)) for name, peak in after.items() if name in before}
    return {}


def replace_content(module: ModuleOp, source: ModuleOp) -> None:
    """Replace the operations of the module with the operations of `source`. Afterwards, `source` is empty."""
    for op in list(module.ops):
        module.body.block.erase_op(op)
    for op in list(source.ops):
        op.detach()
        module.body.block.add_op(op)


def rewritten_copy(module: ModuleOp, options: RecomputeOptions) -> RewriteResult:
    """Rewrite a copy of the module as `rewrite_in_place` does, and return the copy. The given module must have been
    verified.

    With a budget, Ctrl-C or the time limit of the options ends the search with the best result so far. The default time
    limit is `default_seconds`.
    """
    if options.budget is None:
        return run_with_alternatives(module, options)
    budget = Budget.of(options.budget, options.memory_model, options.target)
    seconds = default_seconds(_LOG) if options.time_limit is None else options.time_limit
    with stop_predicate(seconds) as stop:
        return search_within(module, budget, options, stop)


def search_within(
    module: ModuleOp, budget: Budget, options: RecomputeOptions = DEFAULT_OPTIONS, stop: Stop = never_stop
) -> RewriteResult:
    """Rewrite as `rewritten_copy` does, within the given budget instead of the budget of the options.

    `stop`: a predicate that ends the search with the best result so far.

    Raises:
        Refusal: No plan meets the budget.
    """
    require_order_model(module, options.moves, budget)

    def within(offload: Offload) -> RewriteResult:
        moving = replace(options, offload=offload)

        def run(planned: Sequence[StepPlan] | Planner | None, loops: LoopSchedule) -> RewriteResult:
            return run_with_alternatives(module, replace(moving.with_planned(planned), loops=loops))

        return cheapest_within_budget(module, budget, moving, run, stop)

    with keep_whole(module) as whole_functions:
        best = cheapest_moves(module, within, options.moves)
    remove_whole_marks(best.module, whole_functions)
    return best


def run_with_alternatives(module: ModuleOp, options: RecomputeOptions) -> RewriteResult:
    """Run the stages. Rerun the stages for each alternative in this module's table that may be better. The budget of
    the options is ignored.

    Marks that are written as calls become attributes in the given module, which is not modified otherwise.

    Raises:
        Refusal: All runs are refused, including the run with calls in place.
    """
    mark_remarks = without_move_remarks(take_marks(module).remarks, options.moves.marked)
    try:
        result = _run_with_calls_inlined(module, options)
    except Refusal:
        result = _run_with_calls_in_place(module, options)
        if result is None:
            raise
    else:
        if may_be_better_with_calls_in_place(result):
            result = _run_with_calls_in_place(module, options) or result
    outcome = replace(result.outcome, remarks=(*mark_remarks, *result.outcome.remarks))
    if result.module is not None and merge_copied_branches(result.module):
        # The peaks are those of the emitted module, in which no branches were merged yet.
        outcome = replace(outcome, peak_changes={})
    return replace(result, outcome=outcome)


def _run_with_calls_inlined(module: ModuleOp, options: RecomputeOptions) -> RewriteResult:
    """Run the stages, which inline calls and restore them. Rerun the stages for the alternatives in this module's
    table.

    If the run with joined branches is refused, the result of the run without them is used.
    """
    result, alternative = _run_for_plan(module, options)
    joins_branches = False
    if options.planned is None and has_several_conditionals(module):
        with suppress(Refusal):
            joined, joined_alternative = run_stages(module, options, joins_branches=True)
            if is_better_with_joined_branches(joined, result, module, options.emission.keeps_barriers):
                result, alternative, joins_branches = joined, joined_alternative, True
    if alternative is Alternative.LOOPS_ALONE:
        assert not joins_branches, "a result whose copies lower no peak is not better than the result before it"
        options = options.with_planned(plan_nothing)
        alone, alternative = run_stages(module, options)
        result = loops_alone(result, alone)
    if alternative is Alternative.FUNCTIONS_INLINED and result.module is not None:
        inlined, _ = run_stages(module, replace(options, calls=False), joins_branches)
        result = unless_calls_raise_peak(result, inlined)
    return result


def _run_for_plan(module: ModuleOp, options: RecomputeOptions) -> tuple[RewriteResult, Alternative | None]:
    """Run the stages. If the plan of the options does not match the step, run the stages again with joined branches,
    because the plan may have been made for them. A planner needs no second run, because it plans every step that it
    receives."""
    try:
        return run_stages(module, options)
    except Refusal:
        if options.plan is None or not has_several_conditionals(module):
            raise
        with suppress(Refusal):
            return run_stages(module, options, joins_branches=True)
        raise


def _run_with_calls_in_place(module: ModuleOp, options: RecomputeOptions) -> RewriteResult | None:
    """Run the stages as `_run_with_calls_inlined` does, but leave calls with foreign attributes in place; return None
    if there are no such calls, or if the run is refused."""
    with keep_whole(module) as whole_functions:
        if not whole_functions:
            return None
        try:
            result = _run_with_calls_inlined(module, options)
        except Refusal:
            return None
    remove_whole_marks(result.module, whole_functions)
    return result
