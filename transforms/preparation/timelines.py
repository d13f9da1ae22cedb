"""Compute the memory timelines of the functions of a module on an inlined and flattened copy."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp

from ...analysis.memory.timeline import Labels, Timeline, peak_in_order, timeline
from ...analysis.memory.xla.memory import xla_timeline
from ...analysis.step.order import functions_of
from ...analysis.step.phases import Phases, phases
from ...dialects.cloning import clone_of
from ...options.memory_model import ORDER, XLA
from ...support.operations import is_private
from ..inline import inline
from ..inline_gradient import inline_gradient
from ..inline_segments import inline_segments

_TIMELINES: dict[str, Callable[[FuncOp, Phases | None, Labels], Timeline]] = {ORDER: timeline, XLA: xla_timeline}
"""The function that computes a timeline, for each memory model. Under `order`, every result is stored."""


def flat_copy(module: ModuleOp) -> ModuleOp:
    """Return a copy of the module with calls, gradient regions and segments inlined."""
    copy = clone_of(module)
    inline(copy)
    inline_gradient(copy)
    inline_segments(copy)
    return copy


def peaks_of(module: ModuleOp, model: str) -> dict[str, int]:
    """Return the peak of each public function in bytes, after inlining.

    The peaks are the same as in `timelines_of`, but no buffer labels are computed.

    Raises:
        Refusal: A function has dynamic shapes.
    """
    if model != ORDER:
        return {name: function_timeline.peak_bytes for name, function_timeline in timelines_of(module, model)}
    return peaks_in_order(module if is_flat(module) else flat_copy(module))


def peaks_in_order(module: ModuleOp) -> dict[str, int]:
    """Return the peak of each public function of a flat module in program order, in bytes."""
    return {function.sym_name.data: peak_in_order(function) for function in functions_of(module)}


def is_flat(module: ModuleOp) -> bool:
    """Return whether the module consists of one function without calls and regions; `flat_copy` would not change such a
    module."""
    operations = list(module.ops)
    if len(operations) != 1 or not isinstance(function := operations[0], FuncOp) or is_private(function):
        return False
    return not any(op.regions or isinstance(op, CallOp) for block in function.body.blocks for op in block.ops)


def timelines_of(module: ModuleOp, model: str) -> list[tuple[str, Timeline]]:
    """Return the name and the timeline of each public function.

    Raises:
        Refusal: A function has dynamic shapes.
    """
    flattened = module if is_flat(module) else flat_copy(module)
    classified = [(function, phases(function)) for function in functions_of(flattened)]
    return [
        (function.sym_name.data, _TIMELINES[model](function, stated, Labels.of(stated)))
        for function, stated in classified
    ]
