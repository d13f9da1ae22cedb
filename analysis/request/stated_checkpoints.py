"""Checkpoints in an attribute of the step, `func.func @step(…) attributes {recompute.checkpoints = ["h0", "h1"]}`."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ...dialects.names import Names
from ...options.selection import Selection
from ...support.diagnostics import Remark
from ..step.functions import functions_of


def state_checkpoints(function: FuncOp, names: list[str]) -> None:
    """Append names to the checkpoints in the attribute of the function."""
    checkpoints = dict.fromkeys([*stated_checkpoints(function), *names])
    function.attributes[Names.CHECKPOINTS] = ArrayAttr(map(StringAttr, checkpoints))


def stated_checkpoints(function: FuncOp) -> list[str]:
    stated = function.attributes.get(Names.CHECKPOINTS)
    entries = cast(ArrayAttr[Attribute], stated) if isinstance(stated, ArrayAttr) else [stated]
    return [name.data for name in entries if isinstance(name, StringAttr)]


def as_stated(module: ModuleOp, selection: Selection) -> tuple[Selection, list[Remark]]:
    """Add the checkpoints in the attributes of the module's steps to the selection.

    A selection with segments or checkpoints of its own takes precedence, and is returned with a remark.
    """
    stating = [function for function in functions_of(module) if stated_checkpoints(function)]
    if not stating:
        return selection, []
    if selection.segments != "auto" or selection.checkpoints is not None:
        return selection, [Remark(stating[0], OVERRIDDEN)]
    names = dict.fromkeys(name for function in stating for name in stated_checkpoints(function))
    return replace(selection, checkpoints=tuple(names)), []


OVERRIDDEN = "the checkpoints in the attributes of the step are ignored: the options define its segments"
