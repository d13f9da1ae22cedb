"""Curves over budgets, as files: `--curve F.json|.svg|.png|.html`, with plans of other planners, `--beside FILE`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from ..planning.solvers.problem import Problem
from ..planning.solvers.sequence import evaluate, read_order
from ..planning.solvers.view_copies import with_copies
from ..reports.curve import Curve, Marker, to_json
from ..reports.curve_html import to_html
from ..support.strict_json import EXACT, BadJson, parsed
from .files import FileError, read_text, write_bytes

TITLE = "What memory costs"


def _svg(curves: Sequence[Curve]) -> bytes:
    from ..reports.curve_chart import to_svg

    return to_svg(curves, TITLE).encode()


def _png(curves: Sequence[Curve]) -> bytes:
    from ..reports.curve_chart import to_png

    return to_png(curves, TITLE)


_FORMATS: dict[str, Callable[[Sequence[Curve]], bytes]] = {
    ".json": lambda curves: to_json(curves).encode(),
    ".svg": _svg,
    ".png": _png,
    ".html": lambda curves: to_html(curves, TITLE).encode(),
}


def demand_format(path: str) -> None:
    """Raises `ValueError` if the suffix of the path is not that of a format, before any work is done."""
    if Path(path).suffix not in _FORMATS:
        raise ValueError(f"--curve {path}: the suffix selects the format, one of {', '.join(_FORMATS)}")


def write_curves(path: str, curves: Sequence[Curve]) -> None:
    """Write the curves in the format of the suffix. Raises `FileError`, and `ValueError` if matplotlib is missing."""
    try:
        data = _FORMATS[Path(path).suffix](curves)
    except ImportError as error:
        raise ValueError(str(error)) from error
    write_bytes(path, data)


def markers_of(problem: Problem, paths: Iterable[str]) -> list[Marker]:
    """The plans of other planners as markers. A file is an order of execution, as `--evaluate` reads it, evaluated by
    our model, or, with the suffix .json, a list of `{"tag": name, "peak_bytes": n, "rec_cost": n}`, costs in the units
    of the graph.

    Raises `FileError`, and `ValueError` for an invalid order."""
    return [marker for path in paths for marker in _markers(problem, path)]


def _markers(problem: Problem, path: str) -> Iterable[Marker]:
    text, name = read_text(path)
    if Path(path).suffix == ".json":
        return _markers_in_json(problem, text, name)
    peak_bytes, extra_cost = evaluate_order(problem, text, name)
    return [Marker(Path(path).stem, peak_bytes, problem.percent(extra_cost))]


def evaluate_order(problem: Problem, text: str, name: str) -> tuple[int, int]:
    """Peak bytes and extra cost of an order, with the copies of views that it names."""
    widened = with_named_views(problem, text)
    evaluation = evaluate(widened, read_order(widened, text, name))
    return evaluation.peak_bytes, evaluation.cost - problem.total_cost


def with_named_views(problem: Problem, text: str) -> Problem:
    """The problem, with copies of the views that an order names."""
    labels = {line.split("#")[0].strip() for line in text.splitlines()}
    return with_copies(problem, [view for view in problem.views if f"copy:{view.label}" in labels])


def _markers_in_json(problem: Problem, text: str, name: str) -> Iterable[Marker]:
    try:
        rows = parsed(text)
    except BadJson as error:
        raise FileError(f"{name}:{error.line}:{error.column}: error: this is no JSON: {error.reason}") from error
    if not isinstance(rows, list):
        raise FileError(f"{name}:1:1: error: no list of points with tag, peak_bytes and rec_cost")
    points = enumerate(cast(list[object], rows))
    return [_marker(problem, point, f"{name}:1:1: error: point {number}") for number, point in points]


def _marker(problem: Problem, point: object, where: str) -> Marker:
    if not isinstance(point, dict):
        raise FileError(f"{where} is no object")
    fields = cast(dict[str, Any], point)
    amounts = [fields.get(name) for name in ("peak_bytes", "rec_cost")]
    for name, amount in zip(("peak_bytes", "rec_cost"), amounts, strict=True):
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < EXACT:
            raise FileError(f"{where}: {name} is no number from 0 to 2**53: {amount!r}")
    return Marker(str(fields.get("tag", "")), int(fields["peak_bytes"]), problem.percent(fields["rec_cost"]))
