"""The output of `recompute-plan`: the lines for a plan, a refusal and a sweep over budgets, and curves as files,
`--curve F.json|.svg|.png|.html`, with the plans of other planners, `--beside FILE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from ..planning.solvers.problem import Problem
from ..planning.solvers.result import Infeasible, Result
from ..planning.solvers.sequence import evaluate, read_order
from ..planning.solvers.sweep import Outcome
from ..planning.solvers.view_copies import with_copies
from ..reports.curve import Curve, Marker, Point, to_json
from ..reports.curve_html import to_html
from ..reports.memory_chart import demand_matplotlib
from ..support.strict_json import EXACT, BadJson, parsed
from ..support.units import format_bytes
from .files import FileError, read_text, write_bytes


def title(name: str, problem: Problem, plain_peak: int) -> str:
    counts = f"{len(problem)} operations, {len(problem.sizes)} storages"
    return f"{name}: {counts}, plain peak {plain_peak} bytes ({format_bytes(plain_peak)})"


def result_lines(result: Result, plain_peak: int) -> list[str]:
    copies = f"{len(result.pairs)} cop{'y' if len(result.pairs) == 1 else 'ies'}"
    ended = "" if result.finished else "; stopped before its end: the best so far"
    if result.budget >= plain_peak:
        return [f"budget: {result.budget} bytes, not below the plain peak: nothing to do"]
    return [
        f"budget: {result.budget} bytes, {result.budget / plain_peak:.6f} of the plain peak",
        f"peak: {result.peak_bytes} bytes, {result.peak_bytes / plain_peak:.6f} of the plain peak",
        f"extra cost: {result.percent:.4f} %, {copies}",
        f"lower bound: {result.bound_percent:.4f} %, proved ({result.bound_by}); gap {result.gap:.4f} points",
        f"found by: {result.solver}; {result.path}; {result.seconds:.1f} s{ended}",
    ]


def _solver_of(result: Result) -> str:
    return result.solver if result.finished else f"{result.solver}; stopped: the best so far"


def in_short(reason: str) -> str:
    """Return the reason of a refusal without its list of operations."""
    return reason.split(": operation")[0]


def fit_line(outcome: Outcome, budget: str) -> str:
    """Return one line on whether a graph keeps the budget."""
    if isinstance(outcome, Infeasible):
        answer = "the graph does not fit" if outcome.proved else "nothing was found with which the graph fits"
        return f"no: {answer} {budget}"
    if not outcome.pairs:
        return f"yes, as it is: the graph fits {budget}"
    bound = f"at least {outcome.bound_percent:.4f} % is proved to be needed"
    return f"yes, with recomputation: the graph fits {budget} at {outcome.percent:.4f} % extra work ({bound})"


def marker_lines(markers: Iterable[Marker], plain_peak: int) -> list[str]:
    """Return the plans of other planners, in the columns of a sweep."""
    rows = [
        f"{'':<13} {marker.peak_bytes / plain_peak:<13.4f} {marker.percent:<30.4f} {marker.name}" for marker in markers
    ]
    return ["beside", *rows] if rows else []


def refusal_lines(refusal: Infeasible) -> list[str]:
    lines = [f"refused: {refusal.reason}"]
    if refusal.minimum_bytes:
        lines.append(
            f"proven minimum: {refusal.minimum_bytes} bytes ({format_bytes(refusal.minimum_bytes)}), determined by"
        )
        lines += [f"  {value}" for value in refusal.holding]
    return lines


def unproved_lines(curve: Curve) -> list[str]:
    """Return the table of a curve without bounds."""
    peak, rows = curve.plain_peak_bytes, list[tuple[int, str]]()
    for point in curve.points:
        cells = f"{point.peak_bytes / peak:<13.4f} {point.percent:<10.4f} {_solver_of_point(point)}"
        rows.append((point.budget_bytes, cells))
    for refused in curve.refused:
        rows.append((refused.budget_bytes, f"{'-':<13} {'-':<10} {refused.reason}"))
    return [
        "budget        peak          extra %    found by",
        *(f"{budget / peak:<13.4f} {cells}" for budget, cells in sorted(rows)),
    ]


def _solver_of_point(point: Point) -> str:
    return point.found_by if point.finished else f"{point.found_by}; stopped: the best so far"


def sweep_lines(budgets: Iterable[int], outcomes: Iterable[Outcome], plain_peak: int) -> list[str]:
    """Return a table with one budget per row."""
    lines = ["budget        peak          extra %    bound %    gap      found by"]
    for budget, outcome in zip(budgets, outcomes, strict=True):
        share = f"{budget / plain_peak:<13.4f}"
        if isinstance(outcome, Infeasible):
            lines.append(f"{share} {'-':<13} {'-':<10} {'-':<10} {'-':<8} {in_short(outcome.reason)}")
            continue
        costs = f"{outcome.percent:<10.4f} {outcome.bound_percent:<10.4f} {outcome.gap:<8.4f}"
        lines.append(f"{share} {outcome.peak_bytes / plain_peak:<13.4f} {costs} {_solver_of(outcome)}")
    return lines


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

PICTURES = (".svg", ".png")
"""The formats that matplotlib draws."""


def demand_format(path: str) -> None:
    """Raise `ValueError` if the suffix of the path is not that of a format, or matplotlib is missing for it."""
    if Path(path).suffix not in _FORMATS:
        raise ValueError(f"--curve {path}: the suffix selects the format, one of {', '.join(_FORMATS)}")
    if Path(path).suffix not in PICTURES:
        return
    try:
        demand_matplotlib()
    except ImportError as error:
        raise ValueError(f"--curve {path}: {error}") from error


def write_curves(path: str, curves: Sequence[Curve]) -> None:
    """Write the curves in the format of the suffix, which `demand_format` has checked. Raises `FileError`."""
    write_bytes(path, _FORMATS[Path(path).suffix](curves))


def markers_of(problem: Problem, paths: Iterable[str]) -> list[Marker]:
    """Return the plans of other planners as markers. A file is an order of execution, as `--evaluate` reads it,
    evaluated by our model, or, with the suffix .json, a list of `{"tag": name, "peak_bytes": n, "rec_cost": n}`, costs
    in the units of the graph.

    Raises `FileError`, and `ValueError` for an invalid order."""
    return [marker for path in paths for marker in _markers(problem, path)]


def _markers(problem: Problem, path: str) -> Iterable[Marker]:
    text, name = read_text(path)
    if Path(path).suffix == ".json":
        return _markers_in_json(problem, text, name)
    peak_bytes, extra_cost = evaluate_order(problem, text, name)
    return [Marker(Path(path).stem, peak_bytes, problem.percent(extra_cost))]


def evaluate_order(problem: Problem, text: str, name: str) -> tuple[int, int]:
    """Return peak bytes and extra cost of an order, with the copies of views that it names."""
    widened = with_named_views(problem, text)
    evaluation = evaluate(widened, read_order(widened, text, name))
    return evaluation.peak_bytes, evaluation.cost - problem.total_cost


def with_named_views(problem: Problem, text: str) -> Problem:
    """Return the problem, with copies of the views that an order names."""
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
