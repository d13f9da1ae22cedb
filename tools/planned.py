"""What `recompute-plan` prints of a plan, of a refusal, of many budgets."""

from __future__ import annotations

from collections.abc import Iterable

from ..planning.solvers.problem import Problem
from ..planning.solvers.result import Refusal, Result
from ..planning.solvers.sweep import Outcome
from ..reports.curve import Curve, Marker, Point
from ..support.units import format_bytes


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


def _by(result: Result) -> str:
    return result.solver if result.finished else f"{result.solver}; stopped: the best so far"


def in_short(reason: str) -> str:
    """Up to where a refusal begins to list names."""
    return reason.split(": operation")[0]


def fit_line(outcome: Outcome, budget: str) -> str:
    """Whether a graph keeps the budget, in a line."""
    if isinstance(outcome, Refusal):
        how = "the graph does not fit" if outcome.proved else "nothing was found with which the graph fits"
        return f"no: {how} {budget}"
    if not outcome.pairs:
        return f"yes, as it is: the graph fits {budget}"
    bound = f"at least {outcome.bound_percent:.4f} % is proved to be needed"
    return f"yes, with recomputation: the graph fits {budget} at {outcome.percent:.4f} % extra work ({bound})"


def marker_lines(markers: Iterable[Marker], plain_peak: int) -> list[str]:
    """What others do, in the columns of a sweep."""
    rows = [f"{'':<13} {one.peak_bytes / plain_peak:<13.4f} {one.percent:<30.4f} {one.name}" for one in markers]
    return ["beside", *rows] if rows else []


def refusal_lines(refusal: Refusal) -> list[str]:
    lines = [f"refused: {refusal.reason}"]
    if refusal.minimum_bytes:
        lines.append(
            f"proven minimum: {refusal.minimum_bytes} bytes ({format_bytes(refusal.minimum_bytes)}), held up by"
        )
        lines += [f"  {one}" for one in refusal.holding]
    return lines


def unproved_lines(curve: Curve) -> list[str]:
    """The table of a curve without bounds."""
    peak, rows = curve.plain_peak_bytes, list[tuple[int, str]]()
    for one in curve.points:
        rows.append((one.budget_bytes, f"{one.peak_bytes / peak:<13.4f} {one.percent:<10.4f} {_found(one)}"))
    for one in curve.refused:
        rows.append((one.budget_bytes, f"{'-':<13} {'-':<10} {one.reason}"))
    return [
        "budget        peak          extra %    found by",
        *(f"{at / peak:<13.4f} {said}" for at, said in sorted(rows)),
    ]


def _found(one: Point) -> str:
    return one.found_by if one.finished else f"{one.found_by}; stopped: the best so far"


def sweep_lines(budgets: Iterable[int], outcomes: Iterable[Outcome], plain_peak: int) -> list[str]:
    """A table, a budget a row."""
    lines = ["budget        peak          extra %    bound %    gap      found by"]
    for budget, one in zip(budgets, outcomes, strict=True):
        share = f"{budget / plain_peak:<13.4f}"
        if isinstance(one, Refusal):
            lines.append(f"{share} {'-':<13} {'-':<10} {'-':<10} {'-':<8} {in_short(one.reason)}")
            continue
        peak = f"{one.peak_bytes / plain_peak:<13.4f}"
        lines.append(f"{share} {peak} {one.percent:<10.4f} {one.bound_percent:<10.4f} {one.gap:<8.4f} {_by(one)}")
    return lines
