"""The rewrite of every step in a module, with and without a budget: prepare, choose, copy, clean up, write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps

from xdsl.dialects.builtin import ModuleOp

from ..analysis.step.marks import is_copy
from ..dialects.names import Names
from ..options.loop_schedule import Loops
from ..options.recompute_options import DEFAULT, Planner, RecomputeOptions
from ..planning.graph import Graph
from ..planning.host_moves import Offload
from ..planning.plan import Plan
from ..planning.plan_file import StepPlan
from ..planning.solvers.result import Stop, never
from ..support.diagnostics import Refusal, Remark, RemarkKind
from ..support.operations import every_operation
from ..support.timing import part
from ..transforms.calls.call_attributes import attributed, kept_whole, remove_whole_marks
from ..transforms.calls.restore import nothing_restored, restore_calls
from ..transforms.inline import why_calls_stay
from ..transforms.offload import withdraw
from ..transforms.outline_gradient import outline_gradient
from ..transforms.phase import numbered_steps
from ..transforms.plans.limit_segments import check_limits
from ..transforms.shard_kept import shard_kept
from ..transforms.take_marks import take_marks, without_move_remarks
from ..transforms.verify import verify_input
from .budget.limits import Budget
from .budget.move_choices import cheapest_moves, require_order_model, waits_for, with_moves
from .budget.within import BudgetResult, within_budget
from .carry_out import carry_out_best, carry_out_planned, cost_option, cost_remarks, with_loops_cut
from .emit import emit, in_order, may_cost, peaks_of, replace_content, why_all_worse, why_inlined
from .prepare import prepare
from .recomputation import Recomputation, unchanged


def recompute(module: ModuleOp, options: RecomputeOptions = DEFAULT) -> Recomputation:
    """Recompute in place what the options choose of every step in the module.

    The module stays as it is, and a remark says why, when it has been recomputed already, when nothing can be
    recomputed, and when the choice lowers no peak.

    Raises:
        Refusal: For marks that say nothing, for a step without a gradient or without the segments that were chosen,
            for a plan that does not fit, and when the result breaks an invariant.
    """
    with part("verify"):
        verify_input(module)
    work, outcome = recomputed(module, with_moves(module, options))
    if work is not None:
        replace_content(module, work)
    return outcome


Written = tuple[ModuleOp | None, Recomputation]


def whole_where_lost(
    run: Callable[[ModuleOp, RecomputeOptions], Written],
) -> Callable[[ModuleOp, RecomputeOptions], Written]:
    """Run `run`; if it refuses, or cannot restore a call with attributes of others, run it again with these calls kept
    in place."""

    @wraps(run)
    def either(module: ModuleOp, options: RecomputeOptions) -> Written:
        if not any(Names.WHOLE not in function.attributes for function in attributed(module)):
            return run(module, options)
        first: Written | Refusal
        try:
            first = run(module, options)
            if not first[1].restored.lost:
                return first
        except Refusal as error:
            first = error
        with kept_whole(module) as marked:
            try:
                work, outcome = run(module, options)
            except Refusal:
                if isinstance(first, Refusal):
                    raise first from None
                return first
        remove_whole_marks(work, marked)
        return work, outcome

    return either


@whole_where_lost
def recomputed(module: ModuleOp, options: RecomputeOptions) -> Written:
    """As `recompute`, but return a new module, or None if the step stays unchanged. Ignores `options.budget`.

    The module has been verified. Marks that are written as calls in it become attributes.
    """
    cost, moves = cost_option(module, options.cost), options.planned_moves
    mark_remarks = without_move_remarks(take_marks(module).remarks, options.moves.marked)
    if any(map(is_copy, every_operation(module))):
        return None, unchanged(module, mark_remarks, "the step has copies already, from an earlier run", ())
    prepared, emission = prepare(module, options), options.emission
    work, rolled = prepared.module, prepared.rolled
    steps, chosen = numbered_steps(work, costs=cost.of), replace(options, selection=prepared.selection)
    if options.planned is None:
        cloned = carry_out_best(work, steps, chosen, rolled.copies > 0)
        remarks = [*mark_remarks, *prepared.remarks, *cloned.remarks]
    else:
        cloned = carry_out_planned(work, steps, chosen)
        remarks = [*mark_remarks, *why_calls_stay(module), *prepared.demands.remarks, *cloned.remarks]
    check_limits(work, prepared.demands.of, cloned.steps)
    if not cloned.copies and not rolled.copies:
        return None, unchanged(module, remarks, "nothing is recomputed", steps)
    remarks += [*shard_kept(work, prepared.inside), *cost_remarks(steps, cloned.steps, cost)]
    moved = withdraw(work)
    written = emit(work, prepared.origins, emission, steps)
    peaks = peaks_of(written, cloned)
    if (worse := why_all_worse(peaks, cloned, emission)) is not None:
        remarks = [*mark_remarks, *prepared.remarks, worse]
        if not rolled.copies:
            return None, unchanged(module, remarks, worse.reason, steps)
        work, outcome = recomputed(module, options.with_planned(_nothing))
        return work, replace(outcome, remarks=with_loops_cut(remarks))
    if emission.is_ordered:
        # Merging what is the same may have it live longer than was planned.
        remarks.extend(
            Remark(function, note, RemarkKind.ANALYSIS)
            for function, forecast in peaks.items()
            for note in forecast.notes()
        )
    prepared.put_back(emission.is_ordered and emission.staggered)
    held = None if emission.is_ordered or not options.calls else in_order(work)
    restored = restore_calls(work, module, prepared.origins) if options.calls else nothing_restored(module)
    if restored.calls and held is not None and may_cost(work, held):
        inlined, outcome = recomputed(module, replace(options, calls=False))
        if inlined is not None and (why := why_inlined(work, inlined)) is not None:
            return inlined, replace(outcome, remarks=(*outcome.remarks, why))
    if prepared.structured:
        outline_gradient(work)
    all_remarks = with_loops_cut(remarks) if rolled.copies else tuple(remarks)
    eager, waits = max((peak.eager for peak in peaks.values()), default=0), waits_for(moved, moves, steps)
    return work, Recomputation(cloned.steps, all_remarks, restored, rolled, eager, moves, moved, waits, cloned.saving)


def recomputed_within(
    module: ModuleOp, budget: Budget, options: RecomputeOptions = DEFAULT, stop: Stop = never
) -> BudgetResult[Recomputation]:
    """As `recomputed`, within the budget, which is that of the options, parsed.

    `stop`: a predicate that ends the search with the best result so far.

    Raises:
        Refusal: Where no plan keeps the budget.
    """
    options = with_moves(module, options)
    require_order_model(module, options.moves, budget)

    def within(offload: Offload) -> BudgetResult[Recomputation]:
        moving = replace(options, offload=offload)

        def run(planned: Sequence[StepPlan] | Planner | None, loops: Loops) -> tuple[ModuleOp | None, Recomputation]:
            return recomputed(module, replace(moving.with_planned(planned), loops=loops))

        return within_budget(module, budget, moving, run, stop)

    with kept_whole(module) as whole:
        best = cheapest_moves(module, within, options.moves)
    remove_whole_marks(best.module, whole)
    return replace(best, outcome=replace(best.outcome, remarks=(*best.outcome.remarks, *best.remarks)))


def _nothing(_: Graph) -> Plan:
    return Plan()
