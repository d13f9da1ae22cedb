"""Rewrite every step of a module, with and without a budget: prepare, choose, copy, emit.

    rewrite_in_place      in place, for passes
    rewrite_module        a new module, within the budget of the options if they have one
    rewrite_within        a new module, within a given budget
    rewrite_unbudgeted    a new module, without a budget; a budget search measures its results

`rewrite_unbudgeted` repeats a rewrite in three cases: without copies if they lower no peak, with functions inlined if
their calls cost memory, and with calls left in place if their foreign attributes would be lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.memory.peaks import Peaks
from ..analysis.step.marks import is_copy
from ..dialects.names import Names
from ..options.loop_schedule import LoopSchedule
from ..options.recompute_options import DEFAULT_OPTIONS, Planner, RecomputeOptions
from ..planning.host_moves import Offload
from ..planning.plan import plan_nothing
from ..planning.plan_file import StepPlan
from ..planning.solvers.result import Stop, never
from ..support.diagnostics import Refusal, Remark, RemarkKind, Topic
from ..support.interrupts import stopping
from ..support.operations import every_operation
from ..support.timing import part
from ..transforms.calls.call_attributes import functions_with_attributes, keep_whole, remove_whole_marks
from ..transforms.calls.restore import restore_calls, restore_nothing
from ..transforms.clone import Cloned
from ..transforms.inline import why_calls_stay
from ..transforms.offload import remove_unused_moves
from ..transforms.outline_gradient import outline_gradient
from ..transforms.phase import Steps, numbered_steps
from ..transforms.plans.limit_segments import check_limits
from ..transforms.shard_kept import shard_kept
from ..transforms.take_marks import take_marks, without_move_remarks
from ..transforms.verify import verify_input
from .budget.limits import Budget
from .budget.move_choices import cheapest_moves, require_order_model, waits_for
from .budget.within import BudgetResult, within_budget
from .carry_out import carry_out_best, carry_out_planned
from .checked_options import cost_option, with_moves
from .emit import emit, peaks_of, replace_content, why_all_worse
from .left_steps import reword_for_cut_loops
from .options_at_fault import option_at_fault
from .outcome import Recomputation, leave_unchanged
from .plan_cost import cost_remarks
from .prepare import Prepared, prepare
from .restored_calls import calls_may_raise_peak, peaks_in_order, why_inlined

Written = tuple[ModuleOp | None, Recomputation]
"""The new module, or None if the step stays unchanged, and the outcome."""


def rewrite_in_place(module: ModuleOp, options: RecomputeOptions = DEFAULT_OPTIONS) -> Recomputation:
    """Rewrite every step of the module in place, according to the options.

    The module stays unchanged, with a remark that gives the reason, if it already has copies, if nothing can be
    recomputed, or if the choice lowers no peak.

    Raises:
        Refusal: For marks without effect, for a step without a gradient or without the selected segments, for a plan
            that does not fit, if no plan keeps the budget, and if the result breaks an invariant.
        ValueError: For an invalid budget.
    """
    with part("verify"):
        verify_input(module)
    result = rewrite_module(module, options)
    if result.module is not None:
        replace_content(module, result.module)
    return result.outcome


def rewrite_module(module: ModuleOp, options: RecomputeOptions) -> BudgetResult[Recomputation]:
    """Rewrite as `rewrite_in_place` does, but return a new module. The module must have been verified.

    With a budget, Ctrl-C and the time limit of the options end the search with the best result so far.
    """
    options = with_moves(module, options)
    if options.budget is None:
        work, outcome = rewrite_unbudgeted(module, options)
        return BudgetResult(work, outcome, {}, (), options.loop_schedule)
    budget = Budget.of(options.budget, options.memory_model, options.target)
    with stopping(options.time_limit) as stop:
        return rewrite_within(module, budget, options, stop)


def rewrite_within(
    module: ModuleOp, budget: Budget, options: RecomputeOptions = DEFAULT_OPTIONS, stop: Stop = never
) -> BudgetResult[Recomputation]:
    """Rewrite as `rewrite_module` does, within the given budget instead of the budget of the options.

    `stop`: a predicate that ends the search with the best result so far.

    Raises:
        Refusal: If no plan keeps the budget.
    """
    options = with_moves(module, options)
    require_order_model(module, options.moves, budget)

    def within(offload: Offload) -> BudgetResult[Recomputation]:
        moving = replace(options, offload=offload)

        def run(planned: Sequence[StepPlan] | Planner | None, loops: LoopSchedule) -> Written:
            return rewrite_unbudgeted(module, replace(moving.with_planned(planned), loops=loops))

        return within_budget(module, budget, moving, run, stop)

    with keep_whole(module) as whole:
        best = cheapest_moves(module, within, options.moves)
    remove_whole_marks(best.module, whole)
    return replace(best, outcome=replace(best.outcome, remarks=(*best.outcome.remarks, *best.remarks)))


def rewrite_unbudgeted(module: ModuleOp, options: RecomputeOptions) -> Written:
    """Rewrite as `rewrite_module` does, without the budget of the options. Marks written as calls become attributes.

    If the rewrite raises `Refusal`, or cannot restore a call with foreign attributes, it runs again with these calls
    left in place.
    """
    if not any(Names.WHOLE not in function.attributes for function in functions_with_attributes(module)):
        return _rewrite_or_alternative(module, options)
    first: Written | Refusal
    try:
        first = _rewrite_or_alternative(module, options)
        if not first[1].restored.lost:
            return first
    except Refusal as error:
        first = error
    with keep_whole(module) as marked:
        try:
            work, outcome = _rewrite_or_alternative(module, options)
        except Refusal:
            if isinstance(first, Refusal):
                raise first from None
            return first
    remove_whole_marks(work, marked)
    return work, outcome


def _rewrite_or_alternative(module: ModuleOp, options: RecomputeOptions) -> Written:
    """Rewrite the module, or by an alternative that is better: with loops alone if copies lower no peak, and with
    functions inlined if their calls cost memory."""
    result = _run_stages(module, options)
    if result.loops_alone is not None:
        options = options.with_planned(plan_nothing)
        alone = _run_stages(module, options)
        result = replace(alone, outcome=replace(alone.outcome, remarks=result.loops_alone))
    work = result.module
    if work is None:
        return None, result.outcome
    if result.peaks_without_calls and calls_may_raise_peak(work, result.peaks_without_calls):
        inlined = _run_stages(module, replace(options, calls=False))
        if inlined.module is not None and (why := why_inlined(work, inlined.module)) is not None:
            return inlined.module, replace(inlined.outcome, remarks=(*inlined.outcome.remarks, why))
    if result.is_structured:
        outline_gradient(work)
    return work, result.outcome


@dataclass(frozen=True)
class _StagesResult:
    """The result of the stages for one set of options, with the data to decide whether an alternative is better.

    Attributes:
        module, outcome: As in `Written`; gradient regions are not outlined yet.
        is_structured: Whether the module had gradient regions.
        loops_alone: The remarks if only the loops of the step are worth cutting; None if the copies are worth it too.
        peaks_without_calls: The peaks in bytes before functions were called again; empty if that cannot matter.
    """

    module: ModuleOp | None
    outcome: Recomputation
    is_structured: bool = False
    loops_alone: tuple[Remark, ...] | None = None
    peaks_without_calls: Mapping[str, int] = field(default_factory=dict[str, int])


def _run_stages(module: ModuleOp, options: RecomputeOptions) -> _StagesResult:
    """Run each stage once on a copy of the module: prepare, choose and copy, emit, restore calls. The step stays
    unchanged if it has copies already, if nothing is recomputed, or if the emitted step is worse."""
    cost, emission = cost_option(module, options.cost), options.emission
    mark_remarks = without_move_remarks(take_marks(module).remarks, options.moves.marked)
    if any(map(is_copy, every_operation(module))):
        reason = "the step has copies already, from an earlier run"
        return _StagesResult(None, leave_unchanged(module, mark_remarks, reason, (), {}))
    prepared = prepare(module, options)
    # The outlined functions exist only until they are put back.
    containing = prepared.containing
    work, rolled = prepared.module, prepared.rolled
    steps = numbered_steps(work, costs=cost.of)
    cloned = _choose_and_copy(prepared, steps, options)
    stage_remarks = _remarks_of_preparation(module, prepared, options)
    if not cloned.copies and not rolled.copies:
        fault = option_at_fault(steps, options.selection) if options.planned is None else None
        reason = f"nothing is recomputed{f' ({fault})' if fault else ''}"
        remarks = (*mark_remarks, *stage_remarks, *cloned.remarks)
        nothing = leave_unchanged(module, remarks, reason, steps, containing, Topic.NOTHING_RECOMPUTED)
        return _StagesResult(None, nothing)
    emit_remarks = [*shard_kept(work, prepared.inside), *cost_remarks(steps, cloned.steps, cost)]
    moved = remove_unused_moves(work)
    peaks = peaks_of(emit(work, prepared.origins, emission, steps), cloned)
    if (worse := why_all_worse(peaks, cloned, emission)) is not None:
        remarks = (*mark_remarks, *prepared.remarks, worse)
        nothing = leave_unchanged(module, remarks, worse.reason, steps, containing)
        return _StagesResult(None, nothing, loops_alone=reword_for_cut_loops(remarks) if rolled.copies else None)
    if emission.keeps_barriers:
        # CSE may extend live ranges beyond the plan.
        emit_remarks += _eager_remarks(peaks)
    prepared.put_back(emission.keeps_barriers and emission.staggered)
    restores = options.calls and not emission.keeps_barriers
    peaks_without_calls = peaks_in_order(work) if restores else dict[str, int]()
    restored = restore_calls(work, module, prepared.origins) if options.calls else restore_nothing(module)
    remarks = (*mark_remarks, *stage_remarks, *cloned.remarks, *emit_remarks)
    outcome = Recomputation(
        steps=cloned.steps,
        remarks=reword_for_cut_loops(remarks) if rolled.copies else remarks,
        restored=restored,
        rolled=rolled,
        eager=max((peak.eager for peak in peaks.values()), default=0),
        offload=options.planned_moves,
        moves=moved,
        waits=waits_for(moved, options.planned_moves, steps),
        containing=containing,
        saving=cloned.saving,
    )
    return _StagesResult(work, outcome, prepared.structured, None, peaks_without_calls if restored.calls else {})


def _choose_and_copy(prepared: Prepared, steps: Steps, options: RecomputeOptions) -> Cloned:
    """Copy operations in each step according to its best attempt, or to the plan of the options. Raises `Refusal` if a
    segment then exceeds its budget."""
    work, selected = prepared.module, replace(options, selection=prepared.selection)
    if options.planned is None:
        cloned = carry_out_best(work, steps, selected, prepared.rolled.copies > 0)
    else:
        cloned = carry_out_planned(work, steps, selected)
    check_limits(work, prepared.demands.of, cloned.steps)
    return cloned


def _remarks_of_preparation(module: ModuleOp, prepared: Prepared, options: RecomputeOptions) -> Sequence[Remark]:
    """Return the remarks of the preparation; remarks on the selection do not apply to a plan of the options."""
    if options.planned is None:
        return prepared.remarks
    return (*why_calls_stay(module), *prepared.demands.remarks)


def _eager_remarks(peaks: Mapping[FuncOp, Peaks]) -> Iterator[Remark]:
    """Yield a remark on each function whose eager schedule needs much more memory than its program order."""
    for function, peaks_of_function in peaks.items():
        for note in peaks_of_function.notes():
            yield Remark(function, note, RemarkKind.ANALYSIS, Topic.EAGER)
