"""Prepare a module for the choice: flatten a copy, cut its loops, outline nested steps, offer moves to the host, and
mark segments with budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from ..analysis.step.module_steps import numbered_steps
from ..dialects.stablehlo.control import WhileOp
from ..options.loop_schedule import LoopSchedule
from ..options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from ..options.selection import BadSelection, Selection
from ..support.diagnostics import BadRequest, DynamicShape
from ..support.operations import every_operation
from ..support.remarks import Remark
from ..support.timing import part
from ..transforms.calls.origins import Origins
from ..transforms.offload import insert_host_moves
from ..transforms.outlining.nested_steps import outline_nested_steps
from ..transforms.outlining.outlined_steps import OutlinedSteps
from ..transforms.per_device.outline import DeviceStep, outline_device_steps
from ..transforms.plans.write_decisions import remove_segments, write_chosen_marks
from ..transforms.preparation.flatten import FlatModule, flatten
from ..transforms.preparation.timelines import peaks_in_order
from ..transforms.rolled.joined_branches import join_branches_of_module
from ..transforms.rolled.rewrite_loops import LoopRecomputation
from .local_choices.limit_segments import StepLimits, limit_segments, selection_without_budgets
from .local_choices.offered_moves import offered_moves
from .local_choices.recompute_loops import recompute_loops


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
        peaks_before_loops: The peak of each function in program order before loops were cut, in bytes; empty without
            loops, under a budget, and for dynamic shapes.
    """

    module: ModuleOp
    selection: Selection
    is_structured: bool
    remarks: tuple[Remark, ...]
    origins: Origins
    outlined: OutlinedSteps
    rolled: LoopRecomputation
    limits: StepLimits
    peaks_before_loops: Mapping[str, int]


def flatten_with_device_steps(module: ModuleOp, selection: Selection) -> tuple[FlatModule, Sequence[DeviceStep]]:
    """Return a flat copy of the module, in which the bodies of each `shard_map` are outlined as steps, and these steps.
    Its loops are not cut.

    Raises:
        Refusal: The selection does not apply to the module.
    """
    flat = flatten(module, selection)
    return flat, outline_device_steps(flat.module)


@part("prepare")
def prepare(module: ModuleOp, options: RecomputeOptions = DEFAULT_OPTIONS, joins_branches: bool = False) -> Prepared:
    """Make a flat copy of the module. In this copy, cut loops, outline nested steps and offer moves to the host, as the
    options request.

    `joins_branches`: whether to join the branches of a conditional with the branches of its gradient, so that each pair
        of branches is a nested step.

    Raises:
        Refusal: The options do not apply to the module.
    """
    offload = options.planned_moves
    flat, per_device = flatten_with_device_steps(module, options.selection)
    without_budgets = selection_without_budgets(flat.selection)
    peaks_before_loops = dict[str, int]() if options.budget else _peaks_before_loops(flat.module)
    rolled = _cut_loops(flat.module, without_budgets, options.loop_schedule)
    if rolled.copies:
        flat.origins.follow_loops(rolled.replaced)
    joined = join_branches_of_module(flat.module) if joins_branches else ()
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
    remove_segments(limits.unselected)
    return Prepared(
        module=flat.module,
        selection=without_budgets,
        is_structured=flat.is_structured,
        remarks=(*flat.remarks, *rolled.remarks, *move_remarks, *limits.remarks),
        origins=flat.origins,
        outlined=OutlinedSteps(nested, per_device, joined),
        rolled=rolled,
        limits=limits,
        peaks_before_loops=peaks_before_loops,
    )


def _peaks_before_loops(module: ModuleOp) -> dict[str, int]:
    """Return the peaks of a flat module with loops, in program order; empty if there are no loops or if shapes are
    dynamic."""
    try:
        return peaks_in_order(module) if any(isinstance(op, WhileOp) for op in every_operation(module)) else {}
    except DynamicShape:
        return {}


def _cut_loops(module: ModuleOp, selection: Selection, loops: LoopSchedule) -> LoopRecomputation:
    try:
        return recompute_loops(module, selection, loops)
    except BadSelection as error:
        raise BadRequest(module, str(error)) from error
