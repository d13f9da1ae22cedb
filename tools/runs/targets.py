"""Reports as targets of recompute-opt: `-t memory-timeline{format=…, model=…}` and `-t explain{format=…}`.

`driver/inspection/queries.py` and `transforms/preparation/timelines.py` compute the content of the reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from ...analysis.explain.explanation import Explanation
from ...analysis.memory.timeline import Timeline
from ...analysis.step.module_steps import NoGradient
from ...driver.inspection.queries import explanations_of
from ...mlir_io.parser import parse_module
from ...options.memory_model import MODELS, ORDER
from ...options.selection import Selection
from ...reports import explain as explain_report
from ...reports import memory_timeline as timeline_report
from ...reports.memory_chart import demand_matplotlib
from ...reports.memory_html import to_html
from ...rules.costs.cost import FLOPS, cost_named
from ...support.nested_modules import named_modules
from ...support.remarks import tell
from ...support.suggestions import suggestion
from ...transforms.preparation.timelines import timelines_of
from ..file_access.files import read_text

Timelines = list[tuple[str, Timeline]]


class UnknownChoice(ValueError):
    """The error for an invalid value of a target's option."""

    def __init__(self, target: str, option: str, value: str, choices: Iterable[str]):
        super().__init__(f"unknown {option} '{value}' for {target}{suggestion(value, choices)}")


def _text(timelines: Timelines) -> str:
    top = max((timeline.peak_bytes for _, timeline in timelines), default=0)
    return "\n".join(f"@{name}\n{timeline_report.to_text(timeline, top_bytes=top)}" for name, timeline in timelines)


_TIMELINE_FORMATS: dict[str, Callable[[Timelines], str]] = {
    "text": _text,
    "json": lambda timelines: "".join(timeline_report.to_json(timeline, name) for name, timeline in timelines),
    "svg": lambda timelines: timeline_report.to_svg(timelines, "Memory over the step"),
    "html": lambda timelines: to_html(timelines, "Memory over the step"),
}


@dataclass(frozen=True)
class MemoryTimelineTarget(Target):
    """The live bytes at each operation of a step.

    format: `text`, `json`, `html` or `svg` (which needs the `plot` extra).
    model: `order` (program order, with every result stored) or `xla` (the fusion and the schedule of XLA:CPU).
    before: the file of the original step, whose timeline is shown first, on the same scale.
    """

    name = "memory-timeline"

    format: str = "text"
    model: str = ORDER
    before: str = ""

    def check_options(self) -> None:
        """Raise `UnknownChoice` for an invalid option, and `ImportError` if the format needs matplotlib and it is
        missing."""
        if self.format not in _TIMELINE_FORMATS:
            raise UnknownChoice(self.name, "format", self.format, _TIMELINE_FORMATS)
        if self.model not in MODELS:
            raise UnknownChoice(self.name, "model", self.model, MODELS)
        if self.format == "svg":
            demand_matplotlib()

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        self.check_options()
        timelines = self._timelines(module)
        if self.before:
            timelines = _pairs(self._timelines(_parse_file(self.before, ctx)), timelines)
        output.write(_TIMELINE_FORMATS[self.format](timelines))

    def _timelines(self, module: ModuleOp) -> Timelines:
        """Return the timelines of all functions, including functions in inner modules."""
        return [
            (f"{prefix}{name}", timeline)
            for prefix, named in named_modules(module)
            for name, timeline in timelines_of(named, self.model)
        ]


def _parse_file(path: str, ctx: Context) -> ModuleOp:
    """Parse the module in a file. Raises `FileError` and `ParseError`."""
    text, name = read_text(path)
    return parse_module(text, name, ctx)


def _pairs(before: Timelines, after: Timelines) -> Timelines:
    """Return, for each function, the timelines of the original and of the rewritten step.

    Raises `ValueError` for a function that the original step does not define.
    """
    plain = dict(before)
    if missing := [name for name, _ in after if name not in plain]:
        raise ValueError(f"the original step has no function @{missing[0]}; it has @{', @'.join(plain)}")
    return [
        pair for name, timeline in after for pair in ((f"{name}, before", plain[name]), (f"{name}, after", timeline))
    ]


_EXPLAIN_FORMATS: dict[str, Callable[[list[Explanation]], str]] = {
    "text": lambda explanations: "\n".join(map(explain_report.to_text, explanations)),
    "json": explain_report.to_json,
}


@dataclass(frozen=True)
class ExplainTarget(Target):
    """The values that a step saves and, for each segment, the effect and the cost of recomputing the segment, or the
    reason that the segment is saved.

    format: `text`, or `json`, which gives the reason for each saved value.
    segments: `auto`, or a shell-style pattern for scopes, as in recompute-mark.
    checkpoints: names of values that cut the step into segments, as in recompute-mark.
    cost: the cost model: `flops`, `bytes`, `roofline`, `"roofline(h100)"`, or a file, as in recompute.
    primal_results: indices of the results of the forward pass, for a step whose operations do not give their phase.
    primal_values: names of values of the forward pass, such as a loss that is not returned.
    """

    name = "explain"

    format: str = "text"
    segments: str = "auto"
    checkpoints: tuple[str, ...] | None = None
    cost: str = FLOPS
    primal_results: tuple[int, ...] = ()
    primal_values: tuple[str, ...] = ()

    def check_options(self) -> None:
        """Raise `UnknownChoice`, and `BadCost` for an unknown cost model."""
        if self.format not in _EXPLAIN_FORMATS:
            raise UnknownChoice(self.name, "format", self.format, _EXPLAIN_FORMATS)
        cost_named(self.cost)

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        self.check_options()
        output.write(_EXPLAIN_FORMATS[self.format](self._explanations(ctx, module)))

    def _explanations(self, ctx: Context, module: ModuleOp) -> list[Explanation]:
        """Return the explanations of all steps. Raises `NoGradient` if no module has a gradient."""
        selection = Selection(
            self.segments,
            checkpoints=self.checkpoints,
            primal_results=self.primal_results,
            primal_values=self.primal_values,
        )
        explanations = list[Explanation]()
        refused = list[NoGradient]()
        modules = list(named_modules(module)) or [("", module)]
        for prefix, named in modules:
            try:
                of_function, guessed = explanations_of(named, selection, self.cost)
            except NoGradient as error:
                refused.append(error)
            else:
                tell(ctx, guessed)
                explanations.extend(replace(each, function=f"{prefix}{each.function}") for each in of_function)
        if len(refused) == len(modules):
            raise refused[0]
        return explanations
