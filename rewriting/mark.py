"""recompute-mark: translate a selection into marks. `recompute-clone` applies them.

`segments=auto` or `segments=<pattern>` marks the inside of every segment that is worth recomputing:

    %1 = stablehlo.dot_general ... {recompute.segment = "block0", recompute.recompute = true}
    %2 = stablehlo.add ...         {recompute.segment = "block0", recompute.checkpoint}       // an output: kept

An explicit `recompute.recompute` on an operation stays unchanged. The value `true` means `"must_recompute"`, which
includes the unmarked residuals of the result: operations that only the backward pass reads. Unmarked residuals that are
to be kept get `recompute.checkpoint`, so that `recompute-clone` copies exactly what was decided. Segments are flattened
into such marks first.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..analysis.request.checkpoints import reported_where_stated, with_stated_checkpoints
from ..analysis.request.misplaced_marks import misplaced_marks
from ..analysis.request.unprefixed_marks import unprefixed_marks
from ..analysis.step.module_steps import numbered_steps
from ..analysis.step.step import Steps
from ..options.pass_options import has_options
from ..options.selection import AUTO, Selection
from ..search.choice.segment_decisions import segment_decisions
from ..search.local_choices.limit_segments import StepLimits, limit_segments, selection_without_budgets
from ..support.remarks import Remark, tell
from ..support.timing import part
from ..transforms.calls.repeatable import mark_repeatable
from ..transforms.inline_segments import inline_segments
from ..transforms.outlining.nested_steps import outline_temporarily
from ..transforms.phase import write_phases
from ..transforms.plans.misfits import for_each_step
from ..transforms.plans.write_decisions import decision_remarks, remove_segments, write_chosen_marks, write_decisions


def mark(module: ModuleOp, selection: Selection = AUTO) -> list[Remark]:
    """Flatten segments, and mark the operations to recompute according to the selection.

    Returns:
        A remark for each skipped segment, and for each part of the selection that has no effect.

    Raises:
        Refusal: There is no gradient, or the selection does not apply to the step.
    """
    inline_segments(module)
    guessed = write_phases(module, selection.phase_hint)
    mark_repeatable(module, selection.repeatable)
    selection, overridden = with_stated_checkpoints(module, selection)
    steps = numbered_steps(module)
    without_budgeted = selection_without_budgets(selection)
    limits = limit_segments(steps, selection) if selection.segment_budgets else StepLimits()
    for step, marks in limits.marks:
        write_chosen_marks(step, marks)
    remove_segments(limits.unselected)
    return [*guessed, *overridden, *limits.remarks, *mark_steps(steps, without_budgeted)]


@part("mark")
def mark_steps(steps: Steps, selection: Selection) -> list[Remark]:
    """Mark the operations of flattened steps; return remarks as `mark` does.

    The graphs of the steps stay valid, since only attributes change.

    Raises:
        Refusal: The selection does not apply to any step.
    """
    remarks = list[Remark]()
    for function, decided in for_each_step(steps, lambda _, step: segment_decisions(step, selection)).items():
        remarks += decision_remarks(function, decided, selection)
        write_decisions(decided)
    return remarks


@dataclass(frozen=True)
@has_options(Selection)
class MarkPass(ModulePass):
    name = "recompute-mark"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with reported_where_stated(op), outline_temporarily(op):
            tell(ctx, [*unprefixed_marks(op), *misplaced_marks(op), *mark(op, Selection.of(self))])
