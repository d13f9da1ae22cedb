"""recompute-plan: choose the operations to recompute under a budget, and mark them without copying them.

    recompute-opt step.mlir -p 'recompute-plan{budget=50%}' --emit-plan plan.json
    recompute-opt step.mlir -p 'recompute{plan=plan.json}'

    %1 = stablehlo.tanh %0        ->        %1 = stablehlo.tanh %0 {recompute.recompute = true}

The resulting module is inlined and flattened, and its loops are cut as in the plan. The marks show which operations are
recomputed. The plan file applies to the original module, and also lists the positions, numbers and gates of the copies,
which marks cannot express (`marked_plan.py`).
Without a budget and without segment budgets, the budget is `min`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..analysis.request.checkpoints import reported_where_stated
from ..analysis.request.misplaced_marks import misplaced_marks
from ..analysis.request.unprefixed_marks import unprefixed_marks
from ..analysis.step.module_steps import numbered_steps
from ..analysis.step.step import Step
from ..dialects.context import RecomputeContext
from ..dialects.placements import is_offload
from ..options.option_facts import EntryPoint
from ..options.pass_options import has_options
from ..options.recompute_options import RecomputeOptions
from ..options.selection import Selection
from ..planning.plan import Plan
from ..planning.plan_file import StepPlan, to_json
from ..search.checked_options import options_of_pass
from ..search.outcome import Recomputation, RewriteResult
from ..search.prepare import Prepared, prepare
from ..support.counted import counted
from ..support.interface import interface_wording
from ..support.operations import name_of
from ..support.remarks import Remark, RemarkKind, tell
from ..support.units import MINIMUM, format_bytes
from ..transforms.calls.call_attributes import keep_whole
from ..transforms.offload import mark_host_moves
from ..transforms.outline_gradient import outline_gradient
from ..transforms.plans.write_decisions import MAX_LISTED_SEGMENTS
from ..transforms.verify import verify_input
from .marked_plan import MarkedPlan, plan_to_mark, write_plan_marks
from .options_without_effect import options_without_effect, without_repeated
from .rewrite import replace_content, rewritten_copy


def mark_as_planned(
    prepared: Prepared, outcome: Recomputation, to_mark: Sequence[StepPlan] | None = None
) -> list[Remark]:
    """Mark the recomputed operations in the prepared module. Return a remark on each group of copies that frees much
    memory.

    Args:
        prepared: The prepared module.
        outcome: The result of the search, whose plans apply to the prepared module.
        to_mark: The plans whose operations are marked; None for the plans of the result.
    """
    plans = {plan.function: plan for plan in outcome.plans}
    marked = plans if to_mark is None else {plan.function: plan for plan in to_mark}
    remarks = list[Remark]()
    for function, step in numbered_steps(prepared.module):
        name = function.sym_name.data
        plan = plans[name]
        write_plan_marks(step, marked[name])
        remarks += _copy_remarks(function, step, plan.plan)
    mark_host_moves(prepared.module)
    prepared.outlined.put_back()
    if prepared.is_structured:
        outline_gradient(prepared.module)
    return remarks


def _copy_remarks(function: FuncOp, step: Step, plan: Plan) -> Iterator[Remark]:
    """Yield a remark on each copy group that frees much memory, with its operations, position, bytes and FLOPs."""
    largest = sorted(plan.groups, key=lambda group: (-group.saved_bytes, group.before))
    for group in largest[:MAX_LISTED_SEGMENTS]:
        names = ", ".join(dict.fromkeys(_noun_for(step.operation(op)) for op in group.operations))
        yield Remark(
            step.operation(group.operations[-1]),
            f"recomputed before {name_of(step.operation(group.before))}: {names}; {format_bytes(group.freed_bytes)} "
            f"need not be saved, {format_bytes(group.pinned_bytes)} are kept as inputs of the copies, "
            f"{group.extra_flops} extra FLOPs",
            RemarkKind.PASSED,
            amounts=(
                ("operations", len(group.operations)),
                ("flops", group.extra_flops),
                ("freed_bytes", group.freed_bytes),
                ("kept_bytes", group.pinned_bytes),
            ),
        )
    if len(plan.groups) > MAX_LISTED_SEGMENTS:
        yield Remark(
            function,
            f"the plan copies operations at {counted(len(plan.groups) - MAX_LISTED_SEGMENTS, 'more place')}; "
            f"{interface_wording('--emit-plan lists', 'the plan has')} all of them",
            RemarkKind.PASSED,
        )


def _noun_for(op: Operation) -> str:
    return "a value on the host" if is_offload(op) else name_of(op)


def _mark_chosen(module: ModuleOp, options: RecomputeOptions, result: RewriteResult) -> list[Remark]:
    """Apply the loop schedule and the moves of the search result, and mark the operations that it recomputes.

    Args:
        module: The module, which is changed in place.
        options: The user's options.
        result: The result of the search.

    Returns:
        Remarks on the copies, and on a loop schedule that the plan assumes.
    """
    chosen = replace(options, offload=result.outcome.offload, loops=result.loops)
    prepared = prepare(module, chosen)
    loops = chosen.loop_schedule
    to_mark = MarkedPlan(result.outcome.plans)
    if options.budget is not None:
        to_mark = plan_to_mark(module, chosen, result)
    remarks = mark_as_planned(prepared, result.outcome, to_mark.plans)
    if loops != options.loop_schedule and prepare(module, replace(chosen, offload="")).rolled.copies:
        remarks.append(
            Remark(
                module,
                f"the plan assumes the loop schedule {loops.pass_option}: give this option when you apply it",
                RemarkKind.ANALYSIS,
            )
        )
    if to_mark.remark is not None:
        remarks.append(to_mark.remark)
    replace_content(module, prepared.module)
    return remarks


@dataclass(frozen=True)
@has_options(Selection)
@has_options(RecomputeOptions, EntryPoint.PLAN_PASS, first=("budget", "memory_model"))
class PlanPass(ModulePass):
    """
    copies: maximum number of copies of an operation in plans without a budget, as in recompute-clone.
    stagger: whether recompute-stagger will run.
    attempts: number of distinct segment plans for a step that are tried in addition to the plans of the solvers.
    """

    name = "recompute-plan"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = options_of_pass(op, self)
        if options.budget is None and not options.selection.segment_budgets:
            options = replace(options, budget=MINIMUM)
        with reported_where_stated(op), keep_whole(op):
            verify_input(op)
            without_effect = (*unprefixed_marks(op), *misplaced_marks(op), *options_without_effect(op, options))
            result = rewritten_copy(op, options)
            outcome = result.outcome
            tell(ctx, (*without_effect, *without_repeated(outcome.remarks, without_effect)))
            if result.module is not None:
                tell(ctx, _mark_chosen(op, options, result))
        if isinstance(ctx, RecomputeContext):
            ctx.plans.append(to_json(outcome.plans))
