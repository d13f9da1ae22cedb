"""The rewrite of every step in a module, with and without a budget: prepare, choose, copy, clean up, write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps

from xdsl.dialects.builtin import ModuleOp

from ..analysis.step.copied import is_copy
from ..dialects.names import Names
from ..options.loop_schedule import Loops
from ..options.recompute_options import DEFAULT, Planner, RecomputeOptions
from ..planning.graph import Graph
from ..planning.offload import Offload
from ..planning.plan import Plan
from ..planning.plan_file import StepPlan
from ..planning.solvers.result import Stop, never
from ..support.diagnostics import Refusal, Remark
from ..support.timing import part
from ..support.walk import every_operation
from ..transforms.calls.restore import nothing_restored, restore_calls
from ..transforms.calls.whole import attributed, kept_whole, take_off
from ..transforms.inline import why_calls_stay
from ..transforms.offload import withdraw
from ..transforms.outline_gradient import outline_gradient
from ..transforms.phase import numbered_steps
from ..transforms.plans.segment_budgets import demand_kept
from ..transforms.shard_kept import shard_kept
from ..transforms.take_marks import but_for_moves, take_marks
from ..transforms.verify import verify_input
from .budget.limit import Budget
from .budget.moves import cheapest, demand_order, waits_for, with_moves
from .budget.within import Within, within_budget
from .carry_out import asked_cost, but_for_loops, carry_out_best, carry_out_planned, said_of_costs
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
    work, done = recomputed(module, with_moves(module, options))
    if work is not None:
        replace_content(module, work)
    return done


Written = tuple[ModuleOp | None, Recomputation]


def whole_where_lost(
    run: Callable[[ModuleOp, RecomputeOptions], Written],
) -> Callable[[ModuleOp, RecomputeOptions], Written]:
    """Run once more with such calls kept where one is lost, and where a plan was made for the step with them kept."""

    @wraps(run)
    def either(module: ModuleOp, options: RecomputeOptions) -> Written:
        if not any(Names.WHOLE not in function.attributes for function in attributed(module)):
            return run(module, options)
        found: Written | Refusal
        try:
            found = run(module, options)
            if not found[1].restored.lost:
                return found
        except Refusal as error:
            found = error
        with kept_whole(module) as marked:
            try:
                work, done = run(module, options)
            except Refusal:
                if isinstance(found, Refusal):
                    raise found from None
                return found
        take_off(work, marked)
        return work, done

    return either


@whole_where_lost
def recomputed(module: ModuleOp, options: RecomputeOptions) -> Written:
    """As `recompute`, in a module of its own, or None where the step is left unchanged. A budget is ignored.

    The module has been verified. Marks that are written as calls in it become attributes.
    """
    cost, moves = asked_cost(module, options.cost), options.planned_moves
    said = but_for_moves(take_marks(module).remarks, options.moves.marked)
    if any(map(is_copy, every_operation(module))):
        return None, unchanged(module, said, "the step has copies already, from an earlier run", ())
    prepared, emission = prepare(module, options), options.emission
    work, rolled = prepared.module, prepared.rolled
    steps, chosen = numbered_steps(work, costs=cost.of), replace(options, selection=prepared.selection)
    if options.planned is None:
        cloned = carry_out_best(work, steps, chosen, rolled.copies > 0)
        remarks = [*said, *prepared.remarks, *cloned.remarks]
    else:
        cloned = carry_out_planned(work, steps, chosen)
        remarks = [*said, *why_calls_stay(module), *prepared.demands.remarks, *cloned.remarks]
    demand_kept(work, prepared.demands.of, cloned.steps)
    if not cloned.copies and not rolled.copies:
        return None, unchanged(module, remarks, "nothing is recomputed", steps)
    remarks += [*shard_kept(work, prepared.inside), *said_of_costs(steps, cloned.steps, cost)]
    moved = withdraw(work)
    written = emit(work, prepared.origins, emission, steps)
    peaks = peaks_of(written, cloned)
    if (worse := why_all_worse(peaks, cloned, emission)) is not None:
        remarks = [*said, *prepared.remarks, worse]
        if not rolled.copies:
            return None, unchanged(module, remarks, worse.reason, steps)
        work, done = recomputed(module, options.with_planned(_nothing))
        return work, replace(done, remarks=but_for_loops(remarks))
    if emission.is_ordered:
        # Merging what is the same may have it live longer than was planned.
        remarks.extend(Remark(function, said) for function, one in peaks.items() for said in one.said())
    prepared.put_back(emission.is_ordered and emission.staggered)
    held = None if emission.is_ordered or not options.calls else in_order(work)
    restored = restore_calls(work, module, prepared.origins) if options.calls else nothing_restored(module)
    if restored.calls and held is not None and may_cost(work, held):
        inlined, done = recomputed(module, replace(options, calls=False))
        if inlined is not None and (why := why_inlined(work, inlined)) is not None:
            return inlined, replace(done, remarks=(*done.remarks, why))
    if prepared.structured:
        outline_gradient(work)
    said = but_for_loops(remarks) if rolled.copies else tuple(remarks)
    eager, waits = max((peak.eager for peak in peaks.values()), default=0), waits_for(moved, moves, steps)
    return work, Recomputation(cloned.steps, said, restored, rolled, eager, moves, moved, waits, cloned.saving)


def recomputed_within(
    module: ModuleOp, budget: Budget, options: RecomputeOptions = DEFAULT, stop: Stop = never
) -> Within[Recomputation]:
    """As `recomputed`, within the budget, which is that of the options, parsed.

    `stop`: a predicate that ends the search with the best result so far.

    Raises:
        Refusal: Where no plan keeps the budget.
    """
    options = with_moves(module, options)
    demand_order(module, options.moves, budget)

    def within(offload: Offload) -> Within[Recomputation]:
        moving = replace(options, offload=offload)

        def run(planned: Sequence[StepPlan] | Planner | None, loops: Loops) -> tuple[ModuleOp | None, Recomputation]:
            return recomputed(module, replace(moving.with_planned(planned), loops=loops))

        return within_budget(module, budget, moving, run, stop)

    with kept_whole(module) as whole:
        found = cheapest(module, within, options.moves)
    take_off(found.module, whole)
    return replace(found, outcome=replace(found.outcome, remarks=(*found.outcome.remarks, *found.remarks)))


def _nothing(_: Graph) -> Plan:
    return Plan()
