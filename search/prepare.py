"""Prepare a module for the choice of candidates: a copy, inlined and flat, without dead code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.request.checkpoints import with_stated_checkpoints
from ..analysis.request.value_names import matches_of
from ..analysis.step.order import functions_of
from ..dialects.cloning import clone_of
from ..dialects.dead_code import drop_dead_code
from ..dialects.names import Names
from ..options.loop_schedule import Loops, LoopSchedule
from ..options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from ..options.selection import BadSelection, Selection
from ..support.diagnostics import BadRequest, Remark
from ..support.timing import part
from ..transforms.calls.origins import Origins
from ..transforms.calls.reserved import gather_reserved
from ..transforms.flatten_tuples import read_elements
from ..transforms.inline import inline, why_calls_stay
from ..transforms.inline_gradient import inline_gradient
from ..transforms.inline_segments import inline_segments
from ..transforms.loops import Rolled, recompute_loops
from ..transforms.offload import insert_host_moves
from ..transforms.per_device.outline import DeviceStep, outline_device_steps
from ..transforms.per_device.split import split_device_steps
from ..transforms.phase import numbered_steps, write_phases
from ..transforms.plans.limit_segments import StepLimits, mark_segment_budgets, selection_without_budgets
from ..transforms.preparation.nested_steps import NestedStep, outline_nested_steps, put_back
from ..transforms.preparation.repeatable import mark_repeatable


@dataclass(frozen=True)
class Prepared:
    """A flat copy of a module, and the data to choose and to restore.

    Attributes:
        module: The copy.
        selection: The selection, with the checkpoints that the step states itself.
        structured: Whether the module had gradient regions.
        remarks: Remarks on ignored options and on unchanged loops.
        origins: The calls that the inlined operations come from.
        nested: Steps inside loops and branches, outlined as functions until `put_back`.
        per_device: Steps with bodies per device, outlined as functions until `put_back`.
        rolled: The recomputation in loops.
        demands: The limits of segments with budgets; their operations are marked.
    """

    module: ModuleOp
    selection: Selection
    structured: bool
    remarks: tuple[Remark, ...]
    origins: Origins
    nested: Sequence[NestedStep]
    per_device: Sequence[DeviceStep]
    rolled: Rolled
    demands: StepLimits

    @property
    def containing(self) -> Mapping[str, str]:
        """For each outlined function the public function that contains its step, both by name."""
        parents = {outlined.function.sym_name.data: outlined.parent for outlined in (*self.per_device, *self.nested)}
        containing = dict[str, str]()
        for name, parent in parents.items():
            while parent in parents:
                parent = parents[parent]
            containing[name] = parent
        return containing

    @property
    def inside(self) -> Sequence[FuncOp]:
        """The outlined functions."""
        return [outlined.function for outlined in (*self.per_device, *self.nested)]

    def put_back(self, is_held_back: bool = False) -> None:
        """Inline the outlined functions again.

        `is_held_back`: whether a barrier delays each later step until the preceding step has run.
        """
        put_back(self.nested, is_held_back)
        split_device_steps(self.per_device)


@part("prepare")
def prepare(module: ModuleOp, options: RecomputeOptions = DEFAULT_OPTIONS) -> Prepared:
    """Make a flat copy of the module, with its loops cut and its moves offered as the options demand.

    Raises:
        Refusal: For options that do not apply to the module.
    """
    offload = options.planned_moves
    flat = _flat(module, options.selection)
    work, selection = flat.module, flat.selection
    per_device = outline_device_steps(work)
    without_budgeted = selection_without_budgets(selection)
    rolled = _roll(work, without_budgeted, options.loops)
    if rolled.copies:
        flat.origins.follow_loops(rolled.replaced)
    nested = outline_nested_steps(work)
    moves = insert_host_moves(work, selection, offload) if offload.offers else []
    demands = mark_segment_budgets(numbered_steps(work), selection) if selection.segment_budgets else StepLimits()
    remarks = (*flat.remarks, *rolled.remarks, *moves, *demands.remarks)
    return Prepared(work, without_budgeted, flat.structured, remarks, flat.origins, nested, per_device, rolled, demands)


def flatten(module: ModuleOp, selection: Selection) -> tuple[ModuleOp, Selection]:
    """Return a flat copy of the module, with uncut loops, and its selection. Raises `Refusal` for a selection that does
    not apply to the module."""
    flat = _flat(module, selection)
    outline_device_steps(flat.module)
    return flat.module, flat.selection


@dataclass(frozen=True)
class _Flat:
    """A flat copy of the module. The fields are the fields of `Prepared`."""

    module: ModuleOp
    selection: Selection
    structured: bool
    remarks: tuple[Remark, ...]
    origins: Origins


def _flat(module: ModuleOp, selection: Selection) -> _Flat:
    work = clone_of(module)
    origins, stay = Origins(), why_calls_stay(work)
    with part("inline"):
        inline(work, origins)
        gather_reserved(work)
        read_elements(work)
        structured = inline_gradient(work) > 0
        inline_segments(work)
    mark_repeatable(work, selection.repeatable)
    guessed = write_phases(work, selection.phase_hint)
    selection, overridden = with_stated_checkpoints(work, selection)
    for function in functions_of(work):
        function.attributes.pop(Names.CHECKPOINTS, None)
    selection, dead = _without_dead_checkpoints(work, selection)
    drop_dead(work)
    return _Flat(work, selection, structured, (*stay, *guessed, *overridden, *dead), origins)


def _roll(work: ModuleOp, selection: Selection, loops: Loops | LoopSchedule) -> Rolled:
    try:
        return recompute_loops(work, selection, loops)
    except BadSelection as error:
        raise BadRequest(work, str(error)) from error


def drop_dead(module: ModuleOp) -> None:
    """Drop dead code, whose operands would count as outputs of their segments."""
    for function in functions_of(module):
        drop_dead_code(function.body)


def _without_dead_checkpoints(module: ModuleOp, selection: Selection) -> tuple[Selection, list[Remark]]:
    """Return the selection without the checkpoints that only dead code computes, and a remark for each of them."""
    if selection.checkpoints is None:
        return selection, []
    alive = clone_of(module)
    drop_dead(alive)
    kept, remarks = list[str](), list[Remark]()
    named, needed = matches_of(module.walk(), selection.checkpoints), matches_of(alive.walk(), selection.checkpoints)
    for name in selection.checkpoints:
        if named[name] and not needed[name]:
            remarks.append(Remark(named[name][0], f"checkpoint '{name}' is ignored: no result of the step needs it"))
        else:
            kept.append(name)
    return replace(selection, checkpoints=tuple(kept)), remarks
