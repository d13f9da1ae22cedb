"""Memory timelines of the functions of a module, computed on an inlined and flattened copy."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ...analysis.memory.timeline import Labels, Timeline, timeline
from ...analysis.memory.xla.memory import xla_timeline
from ...analysis.step.order import functions_of
from ...analysis.step.phases import Phases, phases
from ...options.memory_model import ORDER, XLA
from ..inline import inline
from ..inline_gradient import inline_gradient
from ..inline_segments import inline_segments

_TIMELINES: dict[str, Callable[[FuncOp, Phases | None, Labels], Timeline]] = {ORDER: timeline, XLA: xla_timeline}
"""The timeline of a function by each memory model. In program order every result is stored."""


def flat(module: ModuleOp) -> ModuleOp:
    """Return a copy of the module with calls, gradient regions and segments inlined."""
    copy = module.clone()
    inline(copy)
    inline_gradient(copy)
    inline_segments(copy)
    return copy


def timelines_of(module: ModuleOp, model: str) -> list[tuple[str, Timeline]]:
    """Return the name and the timeline of every public function.

    Raises:
        Refusal: A function has dynamic shapes.
    """
    classified = [(function, phases(function)) for function in functions_of(flat(module))]
    return [
        (function.sym_name.data, _TIMELINES[model](function, stated, Labels.of(stated)))
        for function, stated in classified
    ]
