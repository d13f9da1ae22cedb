"""Reports as output formats of the driver: `-t memory-timeline{format=…, model=…}`, `-t explain{format=…}`.

They look at a copy of the module, inlined and flat: what a step holds shows only there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.target import Target

from ..analysis.explanation import Explanation, explain
from ..analysis.functions import functions_of
from ..analysis.liveness import Timeline, timeline
from ..analysis.phases import Phases, phases
from ..analysis.selection.selection import BadSelection, Selection
from ..analysis.xla.memory import xla_timeline
from ..dialects.diagnostics import Refusal
from ..reports import explain as explain_report
from ..reports import memory_timeline as timeline_report
from ..reports.memory_html import to_html
from ..transforms.inline import inline
from ..transforms.inline_gradient import inline_gradient
from ..transforms.inline_segments import inline_segments
from ..transforms.phase import steps_of


class UnknownChoice(ValueError):
    """A value of an option that the target does not have."""

    def __init__(self, target: str, option: str, given: str, known: Iterable[str]):
        super().__init__(f"unknown {option} '{given}' for {target}; known are {', '.join(known)}")


MODELS: dict[str, Callable[[FuncOp, Phases | None], Timeline]] = {"order": timeline, "xla": xla_timeline}


def _flat(module: ModuleOp) -> ModuleOp:
    """A copy without calls and segments to flatten."""
    copy = module.clone()
    inline(copy)
    inline_gradient(copy)
    inline_segments(copy)
    return copy


def timelines_of(module: ModuleOp, model: str) -> list[tuple[str, Timeline]]:
    """(function name, timeline) of every function that can be called from outside, inlined."""
    copy = _flat(module)
    return [(function.sym_name.data, MODELS[model](function, phases(function))) for function in functions_of(copy)]


def explanations_of(module: ModuleOp, selection: Selection) -> list[Explanation]:
    """Explain every step of the module. Raises `Refusal` where there is no gradient or no such segment."""
    copy = _flat(module)
    return [_explain(function, selection) for function, _ in steps_of(copy)]


def _explain(function: FuncOp, selection: Selection) -> Explanation:
    classified = phases(function)
    assert classified is not None, "steps_of yields functions with a gradient"
    try:
        return explain(function, classified, selection)
    except BadSelection as error:
        raise Refusal(function, str(error)) from error


_TIMELINE_FORMATS: dict[str, Callable[[list[tuple[str, Timeline]]], str]] = {
    "text": lambda found: "\n".join(f"@{name}\n{timeline_report.to_text(one)}" for name, one in found),
    "json": lambda found: "".join(timeline_report.to_json(one) for _, one in found),
    "svg": lambda found: timeline_report.to_svg(found, "Memory over the step"),
    "html": lambda found: to_html(found, "Memory over the step"),
}


@dataclass(frozen=True)
class MemoryTimelineTarget(Target):
    """Live bytes over the step; `format` is text, json, html or svg (svg needs the `plot` extra).

    `model` is order (every result is stored, in program order) or xla (as XLA:CPU stores and runs them).
    """

    name = "memory-timeline"

    format: str = "text"
    model: str = "order"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        if self.format not in _TIMELINE_FORMATS:
            raise UnknownChoice(self.name, "format", self.format, _TIMELINE_FORMATS)
        if self.model not in MODELS:
            raise UnknownChoice(self.name, "model", self.model, MODELS)
        output.write(_TIMELINE_FORMATS[self.format](timelines_of(module, self.model)))


_EXPLAIN_FORMATS: dict[str, Callable[[list[Explanation]], str]] = {
    "text": lambda found: "\n".join(explain_report.to_text(one) for one in found),
    "json": explain_report.to_json,
}


@dataclass(frozen=True)
class ExplainTarget(Target):
    """What the step holds, and per segment what recomputing frees and costs, or why it is not worth it.

    `segments` and `checkpoints` are those of recompute-mark. The format json says of each held value why it is held.
    """

    name = "explain"

    format: str = "text"
    segments: str = "auto"
    checkpoints: tuple[str, ...] | None = None

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        if self.format not in _EXPLAIN_FORMATS:
            raise UnknownChoice(self.name, "format", self.format, _EXPLAIN_FORMATS)
        output.write(
            _EXPLAIN_FORMATS[self.format](
                explanations_of(module, Selection(self.segments, checkpoints=self.checkpoints))
            )
        )
