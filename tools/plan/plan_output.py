"""The output of `recompute-plan` as lines of text: plans, refusals and sweeps over budgets."""

from __future__ import annotations

from collections.abc import Iterable

from ...driver.budgets.fit_answer import NO_BOUND_KNOWN
from ...planning.solvers.problem import Problem
from ...planning.solvers.result import Infeasible, Result, minimum_clause
from ...planning.solvers.sweep import Outcome
from ...reports.curve import Marker, Point, RefusedBudget
from ...support.counted import counted
from ...support.units import format_percent, readable_bytes


def title(name: str, problem: Problem, plain_peak: int) -> str:
    """Return the first line of the output: the size of the graph and its plain peak. `plain_peak`: the peak in
    bytes."""
    counts = f"{counted(len(problem), 'operation')}, {counted(len(problem.storage_bytes), 'storage')}"
    return f"{name}: {counts}, plain peak {readable_bytes(plain_peak)}"


def result_lines(result: Result, plain_peak: int) -> list[str]:
    """Return lines that describe a plan: its budget, peak, cost and lower bound. `plain_peak`: the plain peak in
    bytes."""
    copies = f"{len(result.pairs)} cop{'y' if len(result.pairs) == 1 else 'ies'}"
    ended = "" if result.finished else "; stopped: the best plan so far"
    if result.budget >= plain_peak:
        return [f"budget: {readable_bytes(result.budget)}, not below the plain peak: no recomputation is needed"]
    return [
        f"budget: {readable_bytes(result.budget)}, {result.budget / plain_peak:.6f} of the plain peak",
        peak_line(result.peak_bytes, plain_peak),
        f"extra cost: {format_percent(result.percent)} %, {copies}",
        f"lower bound: {format_percent(result.bound_percent)} %, proved ({result.bound_by}); "
        f"gap {result.optimality.gap:.4f} points",
        f"found by: {result.provenance}; {result.path}; {result.seconds:.1f} s{ended}",
    ]


def peak_line(peak_bytes: int, plain_peak: int) -> str:
    """Return a line with the peak of a plan, in bytes and relative to the plain peak."""
    return f"peak: {readable_bytes(peak_bytes)}, {peak_bytes / plain_peak:.6f} of the plain peak"


def fit_line(outcome: Outcome, budget: str) -> str:
    """Return a line that tells whether a graph fits the budget."""
    if isinstance(outcome, Infeasible):
        if outcome.proved:
            return f"no: the graph does not fit in {budget}"
        return f"unknown: no plan was found with which the graph fits in {budget}, but one may exist"
    if not outcome.pairs:
        return f"yes, as it is: the graph fits in {budget}"
    bound = f"at least {format_percent(outcome.bound_percent)} % is proved to be needed"
    if outcome.bound_percent == 0 < outcome.percent:
        bound = NO_BOUND_KNOWN
    work = format_percent(outcome.percent)
    return f"yes, with recomputation: the graph fits in {budget} at {work} % extra work ({bound})"


def marker_lines(markers: Iterable[Marker], plain_peak: int) -> list[str]:
    """Return table rows for the plans of other planners, with the columns of `SWEEP_HEADER`."""
    rows = [
        f"{'':<13} {marker.peak_bytes / plain_peak:<13.4f} {marker.percent:<30.4f} {marker.name}" for marker in markers
    ]
    return ["beside", *rows] if rows else []


def refusal_lines(refusal: Infeasible) -> list[str]:
    """Return lines that explain why a budget has no plan: the reason, the proven minimum and the values that determine
    it."""
    lines = [f"refused: {refusal.reason}"]
    if refusal.minimum_bytes:
        lines.append(f"proven minimum: {readable_bytes(refusal.minimum_bytes)}, determined by")
        lines += [f"  {value}" for value in refusal.holding]
    return lines


UNPROVED_HEADER = "budget        peak          extra %    found by"


def unproved_row(outcome: Point | RefusedBudget, plain_peak: int) -> str:
    """Return the row of a budget without a lower bound, with the columns of `UNPROVED_HEADER`."""
    share = f"{outcome.budget_bytes / plain_peak:<13.4f}"
    if isinstance(outcome, RefusedBudget):
        return f"{share} {'-':<13} {'-':<10} {outcome.reason}"
    ended = "" if outcome.finished else "; stopped: the best plan so far"
    return f"{share} {outcome.peak_bytes / plain_peak:<13.4f} {outcome.percent:<10.4f} {outcome.found_by}{ended}"


SWEEP_HEADER = "budget        peak          extra %    bound %    gap      found by"


def sweep_row(budget: int, outcome: Outcome, plain_peak: int, stopped: str) -> str:
    """Return the row of a budget, with the columns of `SWEEP_HEADER`.

    `stopped`: the note that the search for this budget was ended, such as `stopped at the time limit of 30 s`; "" if
    the search was completed.
    """
    share = f"{budget / plain_peak:<13.4f}"
    if isinstance(outcome, Infeasible):
        minimum = minimum_clause(outcome.minimum_bytes)
        clauses = [outcome.reason]
        if outcome.minimum_bytes and outcome.reason != minimum:
            clauses.append(minimum)
        ended = f"{stopped}: " if stopped else ""
        return f"{share} {'-':<13} {'-':<10} {'-':<10} {'-':<8} {ended}{'; '.join(clauses)}"
    ended = f"; {stopped}: the best plan so far" if stopped else ""
    costs = f"{outcome.percent:<10.4f} {outcome.bound_percent:<10.4f} {outcome.optimality.gap:<8.4f}"
    return f"{share} {outcome.peak_bytes / plain_peak:<13.4f} {costs} {outcome.provenance}{ended}"
