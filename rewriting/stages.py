"""Run the stages of a rewrite once, on a copy of the module: prepare, choose and copy, emit, restore calls and gradient
regions.

`rewrite.py` runs them again with other options if an alternative may be better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.forecasts.peaks import PeakChange, Peaks
from ..analysis.step.marks import is_copy
from ..analysis.step.module_steps import numbered_steps
from ..analysis.step.order import functions_of
from ..analysis.step.step import Steps
from ..options.recompute_options import RecomputeOptions
from ..planning.host_moves import Moves
from ..planning.plan import Plan
from ..rules.costs.cost import Cost
from ..search.budget.move_choices import uncharged_wait
from ..search.checked_options import cost_option
from ..search.choice.alternatives import Alternative
from ..search.choice.demanded_copies import (
    remarks_on_raised_peaks,
    remarks_on_useless_marks,
    without_choices_of_useless_marks,
)
from ..search.choice.unchanged_steps import remark_on_unchanged_step, reword_for_cut_loops
from ..search.choice.vetoes import calls_may_raise_peak, why_all_worse
from ..search.local_choices.limit_segments import check_limits
from ..search.outcome import Recomputation, RewriteResult
from ..search.plan_cost import cost_remarks
from ..search.prepare import Prepared, prepare
from ..support.operations import every_operation
from ..support.remarks import Remark, RemarkKind, Topic
from ..transforms.calls.restore import Restored, restore_calls, restore_nothing
from ..transforms.inline import why_calls_stay
from ..transforms.offload import remove_unused_moves
from ..transforms.outline_gradient import outline_gradient
from ..transforms.plans.cloned_steps import ClonedStep
from ..transforms.preparation.timelines import peaks_in_order
from ..transforms.shard_kept import shard_kept
from .carry_out import CarriedOut, carry_out_best, carry_out_planned
from .emit import emit
from .options_at_fault import option_at_fault


def run_stages(
    module: ModuleOp, options: RecomputeOptions, joins_branches: bool = False
) -> tuple[RewriteResult, Alternative | None]:
    """Run each stage once on a copy of the module.

    Marks that are written as calls must have been converted to attributes (`take_marks`). The step stays unchanged if
    it already has copies, if nothing is recomputed, or if the emitted step is worse.

    `joins_branches`: as in `prepare`.

    Returns:
        The result, and the alternative that may be better; None if there is none.
    """
    cost = cost_option(module, options.cost)
    if any(map(is_copy, every_operation(module))):
        reason = "the step already has copies from an earlier run"
        outcome = Recomputation((), _with_reason(module, (), reason, Topic.STEP_LEFT))
        return RewriteResult(None, outcome, options.loop_schedule), None
    prepared = prepare(module, options, joins_branches)
    steps = numbered_steps(prepared.module, costs=cost.of)
    carried_out = _choose_and_copy(prepared, steps, options)
    copied = _CopiedModule(original=module, options=options, prepared=prepared, steps=steps, carried_out=carried_out)
    if copied.recomputes_nothing:
        return copied.nothing_recomputed(), None
    return _emit_unless_worse(copied, cost)


def _choose_and_copy(prepared: Prepared, steps: Steps, options: RecomputeOptions) -> CarriedOut:
    """Copy operations in each step, in place, according to its best attempt or to the plan of the options.

    Raises:
        Refusal: A segment exceeds its budget, or an error of `carry_out_best` or `carry_out_planned`.
    """
    options = replace(options, selection=prepared.selection)
    if options.planned is None:
        carried_out = carry_out_best(
            prepared.module, steps, options, prepared.rolled.copies > 0, prepared.limits.marked
        )
    else:
        carried_out = carry_out_planned(prepared.module, steps, options)
    check_limits(prepared.module, prepared.limits.of, carried_out.steps)
    return carried_out


@dataclass(frozen=True, kw_only=True)
class _CopiedModule:
    """A prepared module in which operations have been copied. The methods only read the module. The functions below,
    from `_emit_unless_worse` on, change `prepared.module` in place.

    Attributes:
        original: The original module, which stays unchanged.
        options: The options of the rewrite.
        prepared: The prepared copy of the module, with copies.
        steps: The steps of this copy before operations were copied.
        carried_out: The applied plans.
    """

    original: ModuleOp
    options: RecomputeOptions
    prepared: Prepared
    steps: Steps
    carried_out: CarriedOut

    @property
    def recomputes_nothing(self) -> bool:
        """Whether the module has copies neither in its steps nor in loops."""
        return not self.carried_out.copies and not self.prepared.rolled.copies

    @property
    def remarks_of_preparation(self) -> Sequence[Remark]:
        """The remarks of the preparation. If the options contain a plan, remarks on the selection are left out."""
        if self.options.planned is None:
            return self.prepared.remarks
        return (*why_calls_stay(self.original), *self.prepared.limits.remarks)

    def nothing_recomputed(self) -> RewriteResult:
        """Return the result for a module without copies. The reason names the option that prevents copies."""
        is_planned = self.options.planned is not None
        fault = None if is_planned else option_at_fault(self.steps, self.options.selection)
        reason = f"nothing is recomputed{f' ({fault})' if fault else ''}"
        remarks = (*self.remarks_of_preparation, *self.carried_out.remarks)
        return self.unchanged(remarks, reason, Topic.NOTHING_RECOMPUTED)

    def unchanged(self, remarks: Sequence[Remark], reason: str, topic: Topic) -> RewriteResult:
        """Return the result for an unchanged module, with an empty plan for each step."""
        outcome = Recomputation(
            tuple(ClonedStep(function.sym_name.data, step.graph, Plan(), ()) for function, step in self.steps),
            _with_reason(self.original, remarks, reason, topic),
            containing_functions=self.prepared.outlined.containing_functions,
        )
        return RewriteResult(None, outcome, self.options.loop_schedule)

    def peak_changes(self, emitted: Steps, peaks: Mapping[FuncOp, Peaks]) -> Mapping[str, PeakChange]:
        """Return the known peaks of the functions before and after the rewrite.

        Args:
            emitted: The steps of the emitted module.
            peaks: The peaks of the emitted steps that have copies.
        """
        prepared, carried_out = self.prepared, self.carried_out
        if self.options.budget is not None or prepared.outlined.containing_functions:
            return {}
        changes = dict[str, PeakChange]()
        for function, step in emitted:
            name = function.sym_name.data
            before, after = carried_out.before.get(name), peaks.get(function)
            if prepared.rolled.copies and name in prepared.peaks_before_loops:
                after = after or Peaks.of_step(function, step)
                changes[name] = PeakChange((prepared.peaks_before_loops[name], after.in_order))
            elif before is not None and after is not None and not prepared.rolled.copies:
                # The XLA:CPU model is slow, and its peaks are only known if a share has been predicted from them.
                xla = None if carried_out.saved_share is None else (before.xla, after.xla)
                changes[name] = PeakChange((before.in_order, after.in_order), xla)
        return changes


def _emit_unless_worse(copied: _CopiedModule, cost: Cost) -> tuple[RewriteResult, Alternative | None]:
    """Emit the module and restore its calls, in place. If no peak falls, return the result for the unchanged original
    instead.

    Returns:
        The result, and the alternative that may be better; None if there is none.
    """
    prepared, carried_out, emission = copied.prepared, copied.carried_out, copied.options.emission
    remarks = [
        *shard_kept(prepared.module, prepared.outlined.functions),
        *cost_remarks(copied.steps, carried_out.steps, cost),
    ]
    moves = remove_unused_moves(prepared.module)
    emitted = emit(prepared.module, prepared.origins, emission, copied.steps)
    peaks = carried_out.emitted_peaks(emitted)
    if vetoes := why_all_worse(carried_out.before_optional, peaks, emission.keeps_barriers):
        result = copied.unchanged((*prepared.remarks, *vetoes), vetoes[0].reason, Topic.STEP_LEFT)
        return result, Alternative.LOOPS_ALONE if prepared.rolled.copies else None
    remarks += remarks_on_raised_peaks(carried_out.before_demanded, peaks, prepared.limits.of, emission.keeps_barriers)
    useless = list[Remark]()
    if not prepared.rolled.copies and not prepared.limits.of:
        flops = {step.function: step.plan.extra_flops for step in carried_out.steps}
        useless += remarks_on_useless_marks(carried_out.before_demanded, peaks, flops, emission.keeps_barriers)
    if useless:
        kept = without_choices_of_useless_marks(carried_out.remarks, useless)
        copied = replace(copied, carried_out=replace(carried_out, remarks=tuple(kept)))
        remarks += useless
    if emission.keeps_barriers:
        # CSE may extend live ranges beyond the plan.
        remarks += _eager_remarks(peaks)
    eager_peak_bytes = max((peak.eager for peak in peaks.values()), default=0)
    return _restore(copied, remarks, moves, eager_peak_bytes, copied.peak_changes(emitted, peaks))


def _restore(
    copied: _CopiedModule,
    emit_remarks: Sequence[Remark],
    moves: Moves,
    eager_peak_bytes: int,
    peak_changes: Mapping[str, PeakChange],
) -> tuple[RewriteResult, Alternative | None]:
    """Put outlined steps back into the emitted module, and restore its calls and gradient regions, in place."""
    prepared, options, module = copied.prepared, copied.options, copied.prepared.module
    # The outlined functions exist only until they are inlined.
    containing, run_counts = prepared.outlined.containing_functions, prepared.outlined.run_counts
    replaced = prepared.outlined.put_back(options.emission.keeps_barriers and options.emission.staggered)
    if replaced:
        prepared.origins.follow_loops(replaced)
    restored, may_raise_peak = _restore_calls(copied)
    # The blocks of joined branches are recomputed, although no copy of the conditional is made.
    conditionals = {joined.forward for joined in prepared.outlined.joined}
    carried_out = [
        remark for remark in copied.carried_out.remarks if remark.segments or remark.operation not in conditionals
    ]
    remarks = (*copied.remarks_of_preparation, *carried_out, *emit_remarks)
    outcome = Recomputation(
        steps=copied.carried_out.steps,
        remarks=reword_for_cut_loops(remarks) if prepared.rolled.copies else remarks,
        restored_calls=restored,
        in_loops=prepared.rolled,
        eager_peak_bytes=eager_peak_bytes,
        offload=options.planned_moves,
        moves=moves,
        wait_cost=uncharged_wait(moves, options.planned_moves, copied.steps),
        containing_functions=containing,
        saved_share=copied.carried_out.saved_share,
        run_counts=run_counts,
        peak_changes=peak_changes,
    )
    if prepared.is_structured:
        outline_gradient(module)
    result = RewriteResult(module, outcome, options.loop_schedule)
    return result, Alternative.FUNCTIONS_INLINED if may_raise_peak else None


def _restore_calls(copied: _CopiedModule) -> tuple[Restored, bool]:
    """Restore the calls of the emitted module in place. Return whether they may raise a peak."""
    module, options = copied.prepared.module, copied.options
    if not options.calls:
        return restore_nothing(copied.original), False
    before = None if options.emission.keeps_barriers else peaks_in_order(module)
    restored = restore_calls(module, copied.original, copied.prepared.origins)
    return restored, restored.calls > 0 and before is not None and calls_may_raise_peak(module, before)


def _eager_remarks(peaks: Mapping[FuncOp, Peaks]) -> Iterator[Remark]:
    """Yield a remark on each function that needs much more memory under an eager schedule than in program order."""
    for function, peaks_of_function in peaks.items():
        for note in peaks_of_function.notes():
            yield Remark(function, note, RemarkKind.ANALYSIS, Topic.EAGER)


def _with_reason(module: ModuleOp, remarks: Sequence[Remark], reason: str, topic: Topic) -> tuple[Remark, ...]:
    """Return the remarks, followed by a remark with the reason that the module stays unchanged.

    No remark is added if the last remark already reports that the step is left unchanged.
    """
    if remarks and remarks[-1].topic is Topic.STEP_LEFT:
        return tuple(remarks)
    return (*remarks, remark_on_unchanged_step(functions_of(module)[0], reason, topic))
