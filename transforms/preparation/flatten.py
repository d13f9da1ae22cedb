"""Flatten a module: inline its calls, gradient regions and segments, write phases, and drop dead code.

This is the first stage of `recompute`. All further stages work on the flat copy; the module itself stays unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from ...analysis.request.checkpoints import with_stated_checkpoints
from ...analysis.request.value_names import matches_of
from ...analysis.step.order import functions_of
from ...dialects.cloning import clone_of
from ...dialects.dead_code import drop_dead_code
from ...dialects.names import Names
from ...options.selection import Selection
from ...support.remarks import Remark
from ...support.timing import part
from ..calls.origins import Origins
from ..calls.repeatable import mark_repeatable
from ..calls.reserved import move_next_to_reserved_calls
from ..flatten_tuples import read_elements
from ..inline import inline, why_calls_stay
from ..inline_gradient import inline_gradient
from ..inline_segments import inline_segments
from ..phase import write_phases


@dataclass(frozen=True)
class FlatModule:
    """A flat copy of a module.

    Attributes:
        module: The copy.
        selection: The selection, with the checkpoints that the step itself declares, and without dead checkpoints.
        is_structured: Whether the module had gradient regions.
        remarks: Remarks on calls that stay, guessed phases, and ignored checkpoints.
        origins: The origin of each inlined operation.
    """

    module: ModuleOp
    selection: Selection
    is_structured: bool
    remarks: tuple[Remark, ...]
    origins: Origins


def flatten(module: ModuleOp, selection: Selection) -> FlatModule:
    """Return a flat copy of the module. Its loops are not cut.

    Raises:
        Refusal: The selection does not apply to the module.
    """
    copy = clone_of(module)
    origins, staying_calls = Origins(), why_calls_stay(copy)
    with part("inline"):
        inline(copy, origins)
        move_next_to_reserved_calls(copy)
        read_elements(copy)
        is_structured = inline_gradient(copy) > 0
        inline_segments(copy)
    mark_repeatable(copy, selection.repeatable)
    guessed = write_phases(copy, selection.phase_hint)
    selection, overridden = with_stated_checkpoints(copy, selection)
    for function in functions_of(copy):
        function.attributes.pop(Names.CHECKPOINTS, None)
    selection, dead = _without_dead_checkpoints(copy, selection)
    drop_dead(copy)
    return FlatModule(copy, selection, is_structured, (*staying_calls, *guessed, *overridden, *dead), origins)


def drop_dead(module: ModuleOp) -> None:
    """Erase dead code, whose operands would otherwise be treated as outputs of their segments."""
    for function in functions_of(module):
        drop_dead_code(function.body)


def _without_dead_checkpoints(module: ModuleOp, selection: Selection) -> tuple[Selection, list[Remark]]:
    """Return the selection without the checkpoints that only dead code computes, and a remark for each of them."""
    if selection.checkpoints is None:
        return selection, []
    alive = clone_of(module)
    drop_dead(alive)
    checkpoints, remarks = list[str](), list[Remark]()
    named, needed = matches_of(module.walk(), selection.checkpoints), matches_of(alive.walk(), selection.checkpoints)
    for name in selection.checkpoints:
        if named[name] and not needed[name]:
            remarks.append(Remark(named[name][0], f"checkpoint '{name}' is ignored: no result of the step needs it"))
        else:
            checkpoints.append(name)
    return replace(selection, checkpoints=tuple(checkpoints)), remarks
