"""The trade-off curve of memory and work: for each budget, the extra cost of the best plan and a proven lower bound.

A curve is plain data; `curve_chart.py` and `curve_html.py` plot it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from ..planning.solvers.problem import Problem
from ..planning.solvers.result import Infeasible, Result
from ..planning.solvers.working_set import describe_working_set, largest_working_set


@dataclass(frozen=True)
class SegmentRecomputation:
    """The recomputation of one segment under a plan.

    Attributes:
        segment: The name of the segment; empty for operations outside all segments.
        executions: The number of recomputed operations.
        percent: The cost of the copies, as a percentage of the step's cost.
        values: The most expensive recomputed values, by name and source line.
    """

    segment: str
    executions: int
    percent: float
    values: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Point:
    """A point of the curve: a budget that a plan meets.

    Attributes:
        budget_bytes: The budget.
        peak_bytes: The peak under the plan.
        percent: The extra cost of the plan, as a percentage of the step's cost.
        bound_percent: A proven lower bound on the extra cost; None if the memory model has no bound.
        bound_by: The method that proves the bound, or the reason that there is no bound.
        found_by: The solver that found the plan.
        finished: Whether the search was completed.
        recomputed_segments: The recomputed operations of each segment.
    """

    budget_bytes: int
    peak_bytes: int
    percent: float
    bound_percent: float | None
    bound_by: str
    found_by: str
    finished: bool
    recomputed_segments: tuple[SegmentRecomputation, ...] = ()


@dataclass(frozen=True)
class RefusedBudget:
    """A budget for which no plan was found.

    `proved`: whether it is proved that no plan exists.
    """

    budget_bytes: int
    reason: str
    proved: bool


@dataclass(frozen=True)
class Marker:
    """A plan of another planner, evaluated under the same memory model and shown beside the curve."""

    name: str
    peak_bytes: int
    percent: float


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The trade-off curve of one step.

    Attributes:
        name: The name of the step.
        plain_peak_bytes: The peak of the unchanged step.
        minimum_bytes: A proven lower bound on the peak of any plan; 0 if none is known.
        holding: The names of the values that determine this bound.
        points: Budgets with a plan, in ascending order.
        refused: Budgets without a plan, in ascending order.
        markers: Plans of other planners.
    """

    name: str
    plain_peak_bytes: int
    minimum_bytes: int
    holding: tuple[str, ...]
    points: tuple[Point, ...]
    refused: tuple[RefusedBudget, ...]
    markers: tuple[Marker, ...] = ()


def no_recomputation(_: Result) -> tuple[SegmentRecomputation, ...]:
    return ()


@dataclass(frozen=True)
class Sweep:
    """The outcomes of a solver for a series of budgets.

    Attributes:
        problem: The problem that was solved.
        plain_peak_bytes: The peak of the unchanged step.
        budgets: The budgets in bytes.
        outcomes: The outcome for each budget, in the same order.
    """

    problem: Problem
    plain_peak_bytes: int
    budgets: Sequence[int]
    outcomes: Sequence[Result | Infeasible]


def curve_of(
    name: str,
    sweep: Sweep,
    markers: Iterable[Marker] = (),
    recomputation_of: Callable[[Result], tuple[SegmentRecomputation, ...]] = no_recomputation,
    holding: Sequence[str] = (),
) -> Curve:
    """Return the curve of a sweep over budgets.

    Args:
        name: The name of the step.
        sweep: The outcomes for all budgets.
        markers: Plans of other planners to show along with the curve.
        recomputation_of: Maps a solver's plan to the recomputed operations of each segment.
        holding: The names of the values that determine the lower bound on the peak; by default, the names in the
            problem.
    """
    least = largest_working_set(sweep.problem)
    pairs = sorted(zip(sweep.budgets, sweep.outcomes, strict=True), key=lambda pair: pair[0])
    points = tuple(
        Point(
            budget_bytes=budget,
            peak_bytes=outcome.peak_bytes,
            percent=outcome.percent,
            bound_percent=outcome.bound_percent,
            bound_by=outcome.bound_by,
            found_by=str(outcome.provenance),
            finished=outcome.finished,
            recomputed_segments=recomputation_of(outcome),
        )
        for budget, outcome in pairs
        if isinstance(outcome, Result)
    )
    refused = tuple(
        RefusedBudget(budget, outcome.reason, outcome.proved)
        for budget, outcome in pairs
        if isinstance(outcome, Infeasible)
    )
    return Curve(
        name=name,
        plain_peak_bytes=sweep.plain_peak_bytes,
        minimum_bytes=least.bytes,
        holding=tuple(holding) or describe_working_set(sweep.problem, least),
        points=points,
        refused=refused,
        markers=tuple(markers),
    )


def to_json(curves: Iterable[Curve]) -> str:
    """Return the curves as JSON, with sizes in bytes and costs in percent of the plain step."""
    return json.dumps([asdict(curve) for curve in curves], indent=1) + "\n"
