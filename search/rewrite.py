"""Rewrite every step of a module, with and without a budget: prepare, choose, copy, emit.

    rewrite_in_place      in place, for passes
    rewrite_module        a new module, within the budget of the options if they have one
    rewrite_within        a new module, within a given budget
    rewrite_unbudgeted    a new module, without a budget; a budget search measures its results

`rewrite_unbudgeted` repeats a rewrite in three cases: without copies if they lower no peak but loops were cut, with
functions inlined if their calls cost memory, and with calls left in place if their foreign attributes would be lost.
`vetoes.py` decides the first two.
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
from ..rules.costs.cost import Cost
from ..support.diagnostics import Refusal, Remark, RemarkKind, Topic
from ..support.interrupts import stopping
from ..support.operations import every_operation
from ..support.timing import part
from ..transforms.calls.call_attributes import functions_with_attributes, keep_whole, remove_whole_marks
from ..transforms.calls.restore import restore_calls, restore_nothing
from ..transforms.emit import emit, replace_content
from ..transforms.inline import why_calls_stay
from ..transforms.offload import Moves, remove_unused_moves
from ..transforms.outline_gradient import outline_gradient
from ..transforms.phase import Steps, numbered_steps
from ..transforms.plans.limit_segments import check_limits
from ..transforms.preparation.timelines import peaks_in_order
from ..transforms.shard_kept import shard_kept
from ..transforms.take_marks import take_marks, without_move_remarks
from ..transforms.verify import verify_input
from .budget.limits import Budget
from .budget.move_choices import cheapest_moves, require_order_model, waits_for
from .budget.within import within_budget
from .carry_out import CarriedOut, carry_out_best, carry_out_planned
from .checked_options import cost_option, with_moves
from .options_at_fault import option_at_fault
from .outcome import Recomputation, RewriteResult, Written, leave_unchanged
from .plan_cost import cost_remarks
from .prepare import Prepared, prepare
from .unchanged_steps import reword_for_cut_loops
from .vetoes import calls_may_raise_peak, why_all_worse, why_calls_stay_inlined


def rewrite_in_place(module: ModuleOp, options: RecomputeOptions = DEFAULT_OPTIONS) -> Recomputation:
    """Rewrite every step of the module in place, according to the options.

    The module stays unchanged, with a remark that gives the reason, if it already has copies, if nothing can be
    recomputed, or if the choice lowers no peak.

    Raises:
        Refusal: For marks without effect, for a step without a gradient or without the selected segments, for a plan
            that does not fit, if no plan is within the budget, and if the result breaks an invariant.
        ValueError: For an invalid budget.
    """
    with part("verify"):
        verify_input(module)
    result = rewrite_module(module, options)
    if result.module is not None:
        replace_content(module, result.module)
    return result.outcome


def rewrite_module(module: ModuleOp, options: RecomputeOptions) -> RewriteResult:
    """Rewrite as `rewrite_in_place` does, but return a new module. The module must have been verified.

    With a budget, Ctrl-C and the time limit of the options end the search with the best result so far.
    """
    options = with_moves(module, options)
    if options.budget is None:
        rewritten, outcome = rewrite_unbudgeted(module, options)
        return RewriteResult(rewritten, outcome, options.loop_schedule)
    budget = Budget.of(options.budget, options.memory_model, options.target)
    with stopping(options.time_limit) as stop:
        return rewrite_within(module, budget, options, stop)


def rewrite_within(
    module: ModuleOp, budget: Budget, options: RecomputeOptions = DEFAULT_OPTIONS, stop: Stop = never
) -> RewriteResult:
    """Rewrite a module as `rewrite_module` does, within the given budget instead of that of the options.

    `stop`: a predicate that ends the search with the best result so far.

    Raises:
        Refusal: If no plan is within the budget.
    """
    options = with_moves(module, options)
    require_order_model(module, options.moves, budget)

    def within(offload: Offload) -> RewriteResult:
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
            rewritten, outcome = _rewrite_or_alternative(module, options)
        except Refusal:
            if isinstance(first, Refusal):
                raise first from None
            return first
    remove_whole_marks(rewritten, marked)
    return rewritten, outcome


def _rewrite_or_alternative(module: ModuleOp, options: RecomputeOptions) -> Written:
    """Rewrite the module, or by an alternative that is better: with only loops if copies lower no peak, and with
    functions inlined if their calls cost memory."""
    result = _run_stages(module, options)
    if result.loops_alone is not None:
        options = options.with_planned(plan_nothing)
        alone = _run_stages(module, options)
        result = replace(alone, outcome=replace(alone.outcome, remarks=result.loops_alone))
    if result.module is None:
        return None, result.outcome
    if result.peaks_without_calls and calls_may_raise_peak(result.module, result.peaks_without_calls):
        inlined = _run_stages(module, replace(options, calls=False))
        if inlined.module is not None and (veto := why_calls_stay_inlined(result.module, inlined.module)) is not None:
            return inlined.module, replace(inlined.outcome, remarks=(*inlined.outcome.remarks, veto))
    if result.is_structured:
        outline_gradient(result.module)
    return result.module, result.outcome


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
    """Run each stage once on a copy of the module: prepare, choose and copy, emit, restore calls.

    The step stays unchanged if it has copies already, if nothing is recomputed, or if the emitted step is worse.
    """
    cost = cost_option(module, options.cost)
    mark_remarks = without_move_remarks(take_marks(module).remarks, options.moves.marked)
    if any(map(is_copy, every_operation(module))):
        reason = "the step has copies already, from an earlier run"
        return _StagesResult(None, leave_unchanged(module, mark_remarks, reason, (), {}))
    prepared = prepare(module, options)
    steps = numbered_steps(prepared.module, costs=cost.of)
    carried_out = _choose_and_copy(prepared, steps, options)
    return _CopiedModule(module, options, mark_remarks, prepared, steps, carried_out).finish(cost)


def _choose_and_copy(prepared: Prepared, steps: Steps, options: RecomputeOptions) -> CarriedOut:
    """Copy operations in each step according to its best attempt, or to the plan of the options. Raises `Refusal` if a
    segment then exceeds its budget."""
    options = replace(options, selection=prepared.selection)
    if options.planned is None:
        carried_out = carry_out_best(prepared.module, steps, options, prepared.rolled.copies > 0)
    else:
        carried_out = carry_out_planned(prepared.module, steps, options)
    check_limits(prepared.module, prepared.limits.of, carried_out.steps)
    return carried_out


@dataclass(frozen=True)
class _CopiedModule:
    """A prepared module after operations have been copied, and before it is emitted.

    Attributes:
        original: The module, which stays unchanged.
        options: The options of the rewrite.
        mark_remarks: Remarks on marks that are written as calls.
        prepared: The prepared copy of the module.
        steps: Its steps before operations were copied.
        carried_out: The plans of the steps.
    """

    original: ModuleOp
    options: RecomputeOptions
    mark_remarks: tuple[Remark, ...]
    prepared: Prepared
    steps: Steps
    carried_out: CarriedOut

    def finish(self, cost: Cost) -> _StagesResult:
        """Emit the module and restore its calls, unless nothing is recomputed or a veto leaves the step unchanged."""
        prepared, emission = self.prepared, self.options.emission
        if not self.carried_out.copies and not prepared.rolled.copies:
            return self._nothing_recomputed()
        remarks = [
            *shard_kept(prepared.module, prepared.inside),
            *cost_remarks(self.steps, self.carried_out.steps, cost),
        ]
        moves = remove_unused_moves(prepared.module)
        emitted = emit(prepared.module, prepared.origins, emission, self.steps)
        peaks = self.carried_out.emitted_peaks(emitted)
        if (veto := why_all_worse(self.carried_out.before, peaks, emission.keeps_barriers)) is not None:
            return self._left_unchanged(veto)
        if emission.keeps_barriers:
            # CSE may extend live ranges beyond the plan.
            remarks += _eager_remarks(peaks)
        return self._with_calls(remarks, moves, max((peak.eager for peak in peaks.values()), default=0))

    def _nothing_recomputed(self) -> _StagesResult:
        is_planned = self.options.planned is not None
        fault = None if is_planned else option_at_fault(self.steps, self.options.selection)
        reason = f"nothing is recomputed{f' ({fault})' if fault else ''}"
        remarks = (*self.mark_remarks, *self._remarks_of_preparation, *self.carried_out.remarks)
        topic, containing = Topic.NOTHING_RECOMPUTED, self.prepared.containing
        return _StagesResult(None, leave_unchanged(self.original, remarks, reason, self.steps, containing, topic))

    def _left_unchanged(self, veto: Remark) -> _StagesResult:
        remarks = (*self.mark_remarks, *self.prepared.remarks, veto)
        outcome = leave_unchanged(self.original, remarks, veto.reason, self.steps, self.prepared.containing)
        loops_alone = reword_for_cut_loops(remarks) if self.prepared.rolled.copies else None
        return _StagesResult(None, outcome, loops_alone=loops_alone)

    def _with_calls(self, emit_remarks: Sequence[Remark], moves: Moves, eager_bytes: int) -> _StagesResult:
        """Put outlined steps back into the emitted module, and restore its calls."""
        prepared, options, module = self.prepared, self.options, self.prepared.module
        # The outlined functions exist only until they are put back.
        containing = prepared.containing
        prepared.put_back(options.emission.keeps_barriers and options.emission.staggered)
        may_cost_memory = options.calls and not options.emission.keeps_barriers
        peaks_without_calls = peaks_in_order(module) if may_cost_memory else dict[str, int]()
        if options.calls:
            restored = restore_calls(module, self.original, prepared.origins)
        else:
            restored = restore_nothing(self.original)
        remarks = (*self.mark_remarks, *self._remarks_of_preparation, *self.carried_out.remarks, *emit_remarks)
        outcome = Recomputation(
            steps=self.carried_out.steps,
            remarks=reword_for_cut_loops(remarks) if prepared.rolled.copies else remarks,
            restored=restored,
            rolled=prepared.rolled,
            eager=eager_bytes,
            offload=options.planned_moves,
            moves=moves,
            waits=waits_for(moves, options.planned_moves, self.steps),
            containing=containing,
            saving=self.carried_out.saving,
        )
        peaks = peaks_without_calls if restored.calls else dict[str, int]()
        return _StagesResult(module, outcome, prepared.is_structured, peaks_without_calls=peaks)

    @property
    def _remarks_of_preparation(self) -> Sequence[Remark]:
        """The remarks of the preparation; remarks on the selection do not apply to a plan of the options."""
        if self.options.planned is None:
            return self.prepared.remarks
        return (*why_calls_stay(self.original), *self.prepared.limits.remarks)


def _eager_remarks(peaks: Mapping[FuncOp, Peaks]) -> Iterator[Remark]:
    """Yield a remark on each function whose eager schedule needs much more memory than its program order."""
    for function, peaks_of_function in peaks.items():
        for note in peaks_of_function.notes():
            yield Remark(function, note, RemarkKind.ANALYSIS, Topic.EAGER)
