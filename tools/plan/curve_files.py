"""The files that `recompute-plan --sweep` writes and reads: curves (`--curve F.json`), and plans of other planners
(`--beside F`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from ...planning.solvers.problem import Problem
from ...planning.solvers.sequence import evaluate, read_order
from ...planning.solvers.view_copies import with_copies
from ...reports.curve import Curve, Marker, to_json
from ...reports.curve_html import to_html
from ...reports.memory_chart import demand_matplotlib
from ...support.strict_json import EXACT, BadJson, parse_strictly
from ..file_access.files import FileError, read_text, write_bytes

TITLE = "What memory costs"


def _svg(curves: Sequence[Curve]) -> bytes:
    from ...reports.curve_chart import to_svg

    return to_svg(curves, TITLE).encode()


def _png(curves: Sequence[Curve]) -> bytes:
    from ...reports.curve_chart import to_png

    return to_png(curves, TITLE)


_FORMATS: dict[str, Callable[[Sequence[Curve]], bytes]] = {
    ".json": lambda curves: to_json(curves).encode(),
    ".svg": _svg,
    ".png": _png,
    ".html": lambda curves: to_html(curves, TITLE).encode(),
}

PICTURE_FORMATS = (".svg", ".png")
"""The formats that need matplotlib."""


def demand_format(path: str) -> None:
    """Raise `ValueError` if the suffix of the path selects no known format, or a format for which matplotlib is
    missing."""
    suffix = Path(path).suffix
    if suffix not in _FORMATS:
        raise ValueError(f"--curve {path}: unknown suffix '{suffix}'; expected one of {', '.join(_FORMATS)}")
    if suffix not in PICTURE_FORMATS:
        return
    try:
        demand_matplotlib()
    except ImportError as error:
        raise ValueError(f"--curve {path}: {error}") from error


def write_curves(path: str, curves: Sequence[Curve]) -> None:
    """Write curves in the format that the path's suffix names. `demand_format` has checked the suffix.

    Raises `FileError`.
    """
    write_bytes(path, _FORMATS[Path(path).suffix](curves))


def markers_of(problem: Problem, paths: Iterable[str]) -> list[Marker]:
    """Read the plans of other planners. Return them as markers for a curve.

    Args:
        problem: The problem with which orders of execution are evaluated.
        paths: The files. A file with the suffix .json contains a list of `{"tag": name, "peak_bytes": n, "rec_cost":
            n}`, with costs in the unit of the graph. Any other file contains an order of execution, as for
            `--evaluate`.

    Raises:
        FileError: For a file that cannot be read, and for invalid JSON.
        ValueError: For an invalid order.
    """
    return [marker for path in paths for marker in _markers(problem, path)]


def _markers(problem: Problem, path: str) -> Iterable[Marker]:
    text, name = read_text(path)
    if Path(path).suffix == ".json":
        return _markers_in_json(problem, text, name)
    peak_bytes, extra_cost = evaluate_order(problem, text, name)
    return [Marker(Path(path).stem, peak_bytes, problem.percent(extra_cost))]


def evaluate_order(problem: Problem, text: str, name: str) -> tuple[int, int]:
    """Return the peak in bytes and the extra cost of an order of execution. The order may name copies of views."""
    widened = with_named_views(problem, text)
    evaluation = evaluate(widened, read_order(widened, text, name))
    return evaluation.peak_bytes, evaluation.cost - problem.total_cost


def with_named_views(problem: Problem, text: str) -> Problem:
    """Return the problem with copies added for the views that an order of execution names."""
    labels = {line.split("#")[0].strip() for line in text.splitlines()}
    return with_copies(problem, [view for view in problem.views if f"copy:{view.label}" in labels])


def _markers_in_json(problem: Problem, text: str, name: str) -> Iterable[Marker]:
    try:
        rows = parse_strictly(text)
    except BadJson as error:
        raise FileError(
            f"{name}:{error.line}:{error.column}: error: the file is not valid JSON: {error.reason}"
        ) from error
    if not isinstance(rows, list):
        raise FileError(f"{name}:1:1: error: expected a list of points with tag, peak_bytes and rec_cost")
    points = enumerate(cast(list[object], rows))
    return [_marker(problem, point, f"{name}:1:1: error: point {number}") for number, point in points]


def _marker(problem: Problem, point: object, where: str) -> Marker:
    if not isinstance(point, dict):
        raise FileError(f"{where} is not a JSON object")
    fields = cast(dict[str, Any], point)
    amounts = [fields.get(name) for name in ("peak_bytes", "rec_cost")]
    for name, amount in zip(("peak_bytes", "rec_cost"), amounts, strict=True):
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < EXACT:
            raise FileError(f"{where}: {name} must be a number from 0 to 2**53, not {amount!r}")
    return Marker(str(fields.get("tag", "")), int(fields["peak_bytes"]), problem.percent(fields["rec_cost"]))
