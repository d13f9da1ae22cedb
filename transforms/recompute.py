"""recompute: the whole way, from a training step as a framework lowers it to the same step in less memory.

take-marks -> inline (functions, gradient regions, segments) -> mark (with the phases) -> clone -> shard-kept -> cse
-> verify -> lower -> stagger -> calls come back (`transforms/calls`)
A step with gradient regions comes back with gradient regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..analysis.step.copied import is_copy
from ..dialects.context import RecomputeContext, tell
from ..dialects.diagnostics import Refusal, Remark
from ..dialects.every import every_operation
from ..dialects.stopwatch import part
from ..options.loop_schedule import Loops
from ..options.recompute_options import DEFAULT, Planner, RecomputeOptions
from ..planning.graph import Graph
from ..planning.objective import ATTEMPTS
from ..planning.offload import Offload
from ..planning.plan import Plan
from ..planning.plan_file import StepPlan, to_json
from ..planning.solvers.result import Stop, never
from ..rules.costs.cost import FLOPS
from .calls.restore import nothing_restored, restore_calls
from .calls.whole import kept_whole, take_off, whole_where_lost
from .inline import why_calls_stay
from .mark import MarkPass
from .offload import withdraw
from .outline_gradient import outline_gradient
from .phase import numbered_steps
from .plans.budget import Budget, asked_budget, demand_target
from .plans.called_again import in_order, may_cost, why_inlined
from .plans.carry_out import but_for_loops, carry_out_best, carry_out_planned
from .plans.emit import emit, replace_content
from .plans.extra_cost import asked_cost, said_of_costs
from .plans.host_moves import cheapest, demand_order, waits_for, with_moves
from .plans.judged import peaks_of, why_all_worse
from .plans.prepared import prepare
from .plans.read_plan import read_plan
from .plans.recomputation import Recomputation, unchanged
from .plans.segment_budgets import demand_kept
from .plans.within_budget import Within, within_budget
from .shard_kept import shard_kept
from .take_marks import but_for_moves, take_marks
from .verify import verify_input


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


@whole_where_lost
def recomputed(module: ModuleOp, options: RecomputeOptions = DEFAULT) -> tuple[ModuleOp | None, Recomputation]:
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
    eager, waits = max((one.eager for one in peaks.values()), default=0), waits_for(moved, moves, steps)
    return work, Recomputation(cloned.steps, said, restored, rolled, eager, moves, moved, waits)


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


@dataclass(frozen=True)
class RecomputePass(MarkPass):
    """Recompute segments of a training step: inline, mark, clone, clean up, verify, lower.

    What is recomputed is said as in recompute-mark.

    copies: at most so many copies of one operation, as in recompute-clone.
    target: `stablehlo` or `none`, as in recompute-lower.
    stagger: hold the forward pass back too, as in recompute-stagger.
    calls: functions in which nothing was changed are called again, and so are whole copies, but with the target none
    where that takes more memory; else all stays inlined.
    plan: a file that an earlier run wrote (`recompute-opt --emit-plan`), or somebody else; it replaces the policy.
    budget: `8GiB` of the device, `"50%"` of the step's temporaries, or `min`, at the least extra work; else an error.
    memory_model: what the budget counts, `order` (program order) or `xla`; as the target has it if nothing is said.
    strict: a step that stays as it is is an error.
    attempts: so many ways to cut and copy a step are tried on paper; the one that needs least is carried out.
    loops: what a loop stacks up for a later one is computed again there, as in recompute-loops; `"periodic(8)"` too.
    cost: what planners keep low: `flops`, `bytes`, `roofline`, `"roofline(h100)"`, or a file of costs; remarks say it.
    offload: `marked` moves what is marked `offload` to the host; with a budget `auto`, or `"25GB/s"`, chooses more.
    """

    name = "recompute"

    copies: int = 2
    target: str = "stablehlo"
    stagger: bool = True
    calls: bool = True
    plan: str = ""
    budget: str | int | float | None = None
    memory_model: str = ""
    strict: bool = False
    attempts: int = ATTEMPTS
    loops: bool | str = True
    cost: str = FLOPS
    offload: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        demand_target(op, self.target)
        done = self._done(op)
        if self.strict and not done.copies:
            raise Refusal(op, f"{done.remarks[-1].reason} (strict)")
        tell(ctx, done.remarks)
        if isinstance(ctx, RecomputeContext):
            ctx.plans.append(to_json(done.plans))

    def _done(self, module: ModuleOp) -> Recomputation:
        options = RecomputeOptions.of_pass(self)
        if options.budget is None:
            plan = read_plan(module, self.plan, options.selection) if self.plan else None
            return recompute(module, replace(options, plan=plan))
        budget = asked_budget(module, options.budget, options.memory_model, options.target, self.plan)
        with part("verify"):
            verify_input(module)
        found = recomputed_within(module, budget, options)
        if found.module is not None:
            replace_content(module, found.module)
        return found.outcome
