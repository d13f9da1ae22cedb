"""Checkpoints that the step itself states, `func.func @step(…) attributes {recompute.checkpoints = ["h0", "h1"]}`."""

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
    """Add to what the function states."""
    listed = dict.fromkeys([*stated_checkpoints(function), *names])
    function.attributes[Names.CHECKPOINTS] = ArrayAttr(map(StringAttr, listed))


def stated_checkpoints(function: FuncOp) -> list[str]:
    stated = function.attributes.get(Names.CHECKPOINTS)
    listed = cast(ArrayAttr[Attribute], stated) if isinstance(stated, ArrayAttr) else [stated]
    return [name.data for name in listed if isinstance(name, StringAttr)]


def as_stated(module: ModuleOp, selection: Selection) -> tuple[Selection, list[Remark]]:
    """The selection with the checkpoints that the steps of the module state, where it says nothing of segments.

    Where it does, that counts, and a remark says so.
    """
    stating = [function for function in functions_of(module) if stated_checkpoints(function)]
    if not stating:
        return selection, []
    if selection.segments != "auto" or selection.checkpoints is not None:
        return selection, [Remark(stating[0], OVERRIDDEN)]
    names = dict.fromkeys(name for function in stating for name in stated_checkpoints(function))
    return replace(selection, checkpoints=tuple(names)), []


OVERRIDDEN = "the checkpoints that the step states say nothing here: the options say where its segments are"
