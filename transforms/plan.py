"""recompute-plan: choose under a budget what is computed again, and say so; nothing is copied yet.

    recompute-opt step.mlir -p 'recompute-plan{budget=50%}' --emit-plan plan.json
    recompute-opt step.mlir -p 'recompute{plan=plan.json}'

    %1 = stablehlo.tanh %0        ->        %1 = stablehlo.tanh %0 {recompute.recompute = true}

The module is inlined and flat then, and its loops are cut, as the plan has it. Marks say which operations run again;
where, how often, and behind what, the plan file says, which is for the module as it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ..analysis.step.step import Step
from ..dialects.context import RecomputeContext, tell
from ..dialects.placements import is_offload
from ..dialects.recompute import Names
from ..options.loop_schedule import Loops
from ..options.recompute_options import RecomputeOptions
from ..planning.objective import ATTEMPTS
from ..planning.plan import Plan
from ..planning.plan_file import to_json
from ..rules.costs.cost import FLOPS
from ..rules.names import name_of
from ..search.budget.limit import asked_budget, demand_target
from ..search.budget.loop_choices import loops_option
from ..search.budget.moves import with_moves
from ..search.emit import replace_content
from ..search.prepare import Prepared, prepare
from ..search.recompute import Recomputation, recomputed, recomputed_within
from ..support.diagnostics import Remark
from .calls.whole import kept_whole
from .mark import NAMED, MarkPass
from .offload import mark_moved
from .outline_gradient import outline_gradient
from .phase import numbered_steps
from .plans.notes import write_notes
from .verify import verify_input


def mark_as_planned(prepared: Prepared, done: Recomputation) -> list[Remark]:
    """Mark what runs again in the module, which is in the form that the plans are for; returns the reasons."""
    plans, remarks = {plan.function: plan for plan in done.plans}, list[Remark]()
    for function, step in numbered_steps(prepared.module):
        one = plans[function.sym_name.data]
        write_notes(step, one.notes)
        for op in {op for group in one.plan.groups for op in group.operations}:
            step.operation(op).attributes[Names.RECOMPUTE] = BoolAttr.from_bool(True)
        remarks += _reasons(function, step, one.plan)
    mark_moved(prepared.module)
    prepared.put_back()
    if prepared.structured:
        outline_gradient(prepared.module)
    return remarks


def _reasons(function: FuncOp, step: Step, plan: Plan) -> Iterator[Remark]:
    """Of the copies that free most: what, where, and for what."""
    largest = sorted(plan.groups, key=lambda one: (-one.saved_bytes, one.before))
    for group in largest[:NAMED]:
        names = ", ".join(dict.fromkeys(_named(step.operation(op)) for op in group.operations))
        yield Remark(
            step.operation(group.operations[-1]),
            f"{names} again in front of {name_of(step.operation(group.before))}: {group.freed_bytes} bytes need not be "
            f"saved, {group.pinned_bytes} are kept for it, {group.extra_flops} FLOPs more",
        )
    if len(plan.groups) > NAMED:
        yield Remark(function, f"and in {len(plan.groups) - NAMED} more places; --emit-plan writes all of them")


def _named(op: Operation) -> str:
    return "what lies on the host" if is_offload(op) else name_of(op)


@dataclass(frozen=True)
class PlanPass(MarkPass):
    """Choose under a budget what is computed again: marks, and a plan for `--emit-plan`.

    budget: `8GiB` of the device, `"50%"` of the step's temporaries, or `min`, at the least extra work; else an error.
    `min` if nothing is said, of segments neither.
    memory_model: what the budget counts, `order` (program order) or `xla`; as the target has it if nothing is said.
    copies: at most so many copies of one operation in what is chosen without a budget, as in recompute-clone.
    target: for whom the plan is: `stablehlo` or `none`, as in recompute-lower.
    stagger: whether recompute-stagger will run.
    attempts: so many ways to cut and copy a step are tried beside the solvers' plans.
    loops: what a loop stacks up for a later one is computed again there, as in recompute-loops.
    cost: what is kept low: `flops`, `bytes`, `roofline`, or a file of costs, as in recompute.
    offload: what may lie on the host: `marked`, `auto` or `"25GB/s"`, as in recompute.
    """

    name = "recompute-plan"

    budget: str | int | float | None = None
    memory_model: str = ""
    copies: int = 2
    target: str = "stablehlo"
    stagger: bool = True
    attempts: int = ATTEMPTS
    loops: bool | str = True
    cost: str = FLOPS
    offload: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        demand_target(op, self.target)
        with kept_whole(op):
            written, done, loops = self._done(op)
            tell(ctx, done.remarks)
            if written:
                tell(ctx, self._mark(op, done, loops))
        if isinstance(ctx, RecomputeContext):
            ctx.plans.append(to_json(done.plans))

    def _done(self, module: ModuleOp) -> tuple[bool, Recomputation, Loops]:
        """Whether anything is computed again, what was done, and with which loops."""
        options = with_moves(module, RecomputeOptions.of_pass(self))
        if options.budget is None and options.selection.segment_budgets:
            verify_input(module)
            work, done = recomputed(module, options)
            return work is not None, done, options.loops
        budget = asked_budget(module, options.budget or "min", options.memory_model, options.target)
        verify_input(module)
        found = recomputed_within(module, budget, options)
        return found.module is not None, found.outcome, found.loops

    def _mark(self, module: ModuleOp, done: Recomputation, loops: Loops) -> list[Remark]:
        options = RecomputeOptions.of_pass(self)
        prepared = prepare(module, replace(options, loops=loops, offload=done.offload))
        remarks = mark_as_planned(prepared, done)
        if loops != self.loops and prepare(module, replace(options, offload="")).rolled.copies:
            how = "as they are" if loops is False else "of which so much is kept"
            remarks.append(Remark(module, f"the plan is for loops {how}: carry it out with {loops_option(loops)}"))
        replace_content(module, prepared.module)
        return remarks
