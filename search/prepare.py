"""Prepare a module for the choice: flatten a copy, cut its loops, outline nested steps, offer moves to the host, and
mark segments with budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.step.module_steps import numbered_steps
from ..options.loop_schedule import LoopSchedule
from ..options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from ..options.selection import BadSelection, Selection
from ..support.diagnostics import BadRequest
from ..support.remarks import Remark
from ..support.timing import part
from ..transforms.calls.origins import Origins
from ..transforms.offload import insert_host_moves
from ..transforms.outlining.nested_steps import NestedStep, outline_nested_steps, put_back
from ..transforms.per_device.outline import DeviceStep, outline_device_steps
from ..transforms.per_device.split import split_device_steps
from ..transforms.plans.write_decisions import write_chosen_marks
from ..transforms.preparation.flatten import flatten
from ..transforms.rolled.rewrite_loops import LoopRecomputation
from .local_choices.limit_segments import StepLimits, limit_segments, selection_without_budgets
from .local_choices.offered_moves import offered_moves
from .local_choices.recompute_loops import recompute_loops


@dataclass(frozen=True)
class OutlinedSteps:
    """The steps that are outlined as functions until `put_back` inlines them.

    Attributes:
        nested: Steps inside loops and branches, and later steps of a block with several gradients.
        per_device: Steps with per-device bodies.
    """

    nested: Sequence[NestedStep]
    per_device: Sequence[DeviceStep]

    @property
    def containing_functions(self) -> Mapping[str, str]:
        """The name of the public function around each outlined step, by the name of the outlined function."""
        parents = {outlined.function.sym_name.data: outlined.parent for outlined in (*self.per_device, *self.nested)}
        containing_functions = dict[str, str]()
        for name, parent in parents.items():
            while parent in parents:
                parent = parents[parent]
            containing_functions[name] = parent
        return containing_functions

    @property
    def run_counts(self) -> Mapping[str, int]:
        """The number of times that each outlined step runs in one run of the module, by the name of its function."""
        in_parent = {step.function.sym_name.data: (step.parent, 1) for step in self.per_device}
        in_parent |= {step.function.sym_name.data: (step.parent, step.runs) for step in self.nested}

        def runs(name: str) -> int:
            parent, times = in_parent.get(name, ("", 1))
            return times * runs(parent) if parent else times

        return {name: runs(name) for name in in_parent}

    @property
    def functions(self) -> Sequence[FuncOp]:
        """The outlined functions."""
        return [outlined.function for outlined in (*self.per_device, *self.nested)]

    def put_back(self, delays_later_steps: bool = False) -> None:
        """Inline the functions that were outlined.

        `delays_later_steps`: whether to insert a barrier that delays each later step until the preceding step has run.
        """
        put_back(self.nested, delays_later_steps)
        split_device_steps(self.per_device)


@dataclass(frozen=True)
class Prepared:
    """A flat copy of a module, with the data for making a choice and for restoring the module's form.

    Attributes:
        module: The copy.
        selection: The selection, with the checkpoints that the step itself declares.
        is_structured: Whether the module had gradient regions.
        remarks: Remarks on ignored options and on unchanged loops.
        origins: The origin of each inlined operation.
        outlined: The steps that are outlined as functions.
        rolled: The recomputation in loops.
        limits: The limits of segments with budgets; their operations are marked.
    """

    module: ModuleOp
    selection: Selection
    is_structured: bool
    remarks: tuple[Remark, ...]
    origins: Origins
    outlined: OutlinedSteps
    rolled: LoopRecomputation
    limits: StepLimits


@part("prepare")
def prepare(module: ModuleOp, options: RecomputeOptions = DEFAULT_OPTIONS) -> Prepared:
    """Make a flat copy of the module, then cut loops, outline nested steps and offer moves to the host in it, as the
    options request.

    Raises:
        Refusal: The options do not apply to the module.
    """
    offload = options.planned_moves
    flat = flatten(module, options.selection)
    per_device = outline_device_steps(flat.module)
    without_budgets = selection_without_budgets(flat.selection)
    rolled = _cut_loops(flat.module, without_budgets, options.loop_schedule)
    if rolled.copies:
        flat.origins.follow_loops(rolled.replaced)
    nested = outline_nested_steps(flat.module)
    move_remarks = list[Remark]()
    if offload.offers:
        offered = offered_moves(flat.module, offload)
        move_remarks = insert_host_moves(flat.module, flat.selection, offload, offered)
    limits = StepLimits()
    if flat.selection.segment_budgets:
        limits = limit_segments(numbered_steps(flat.module), flat.selection)
    for step, marks in limits.marks:
        write_chosen_marks(step, marks)
    return Prepared(
        module=flat.module,
        selection=without_budgets,
        is_structured=flat.is_structured,
        remarks=(*flat.remarks, *rolled.remarks, *move_remarks, *limits.remarks),
        origins=flat.origins,
        outlined=OutlinedSteps(nested, per_device),
        rolled=rolled,
        limits=limits,
    )


def _cut_loops(module: ModuleOp, selection: Selection, loops: LoopSchedule) -> LoopRecomputation:
    try:
        return recompute_loops(module, selection, loops)
    except BadSelection as error:
        raise BadRequest(module, str(error)) from error
