"""What each function of a module needs, counted on a copy that is inlined and flat; the module stays as it is."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ...analysis.memory.labels import Labels
from ...analysis.memory.timeline import Timeline, timeline
from ...analysis.memory.xla.memory import xla_timeline
from ...analysis.step.functions import functions_of
from ...analysis.step.phases import Phases, phases
from ..inline import inline
from ..inline_gradient import inline_gradient
from ..inline_segments import inline_segments

ORDER, XLA = "order", "xla"
MODELS: dict[str, Callable[[FuncOp, Phases | None, Labels], Timeline]] = {ORDER: timeline, XLA: xla_timeline}
"""Program order with every result stored; and as XLA:CPU stores and runs them."""


def flat(module: ModuleOp) -> ModuleOp:
    """A copy without calls and segments to flatten."""
    copy = module.clone()
    inline(copy)
    inline_gradient(copy)
    inline_segments(copy)
    return copy


def timelines_of(module: ModuleOp, model: str) -> list[tuple[str, Timeline]]:
    """(function name, timeline) of every function that can be called from outside, inlined.

    Raises `Refusal` for dynamic shapes.
    """
    classified = [(function, phases(function)) for function in functions_of(flat(module))]
    return [
        (function.sym_name.data, MODELS[model](function, found, Labels.of(found))) for function, found in classified
    ]
