"""Trade-off curve of memory and work: for each budget, the extra cost of the best plan and a proven lower bound on it.

A curve is plain data; `curve_chart.py` and `curve_html.py` draw it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from ..planning.solvers.problem import Problem
from ..planning.solvers.result import Infeasible, Result
from ..planning.solvers.working_set import held_up_by, largest_working_set


@dataclass(frozen=True)
class Again:
    """The recomputation of one segment ("": outside every segment): the number of executions, their cost in percent of
    the step, and the most expensive values, by name and source line."""

    segment: str
    executions: int
    percent: float
    values: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """A budget with a plan. `percent`: its extra cost, in percent of the step. `bound_percent`: a proven lower bound on
    it; None if the memory model has no bound. `finished`: False if the search stopped early."""

    budget_bytes: int
    peak_bytes: int
    percent: float
    bound_percent: float | None
    bound_by: str
    found_by: str
    finished: bool
    again: tuple[Again, ...] = ()


@dataclass(frozen=True)
class Refused:
    """A budget without a plan. `proved`: True if the budget is infeasible; False if the search found no plan."""

    budget_bytes: int
    reason: str
    proved: bool


@dataclass(frozen=True)
class Marker:
    """The plan of another planner, measured by the same model."""

    name: str
    peak_bytes: int
    percent: float


@dataclass(frozen=True)
class Curve:
    """The curve of the step `name`, from small budgets to large ones. `minimum_bytes`: a proven lower bound on the
    peak, 0 without one; `holding` names the values that determine it."""

    name: str
    plain_peak_bytes: int
    minimum_bytes: int
    holding: tuple[str, ...]
    points: tuple[Point, ...]
    refused: tuple[Refused, ...]
    markers: tuple[Marker, ...] = ()


def nothing_again(_: Result) -> tuple[Again, ...]:
    return ()


@dataclass(frozen=True)
class Sweep:
    """The outcome of a solver for each budget.

    plain_peak_bytes: The peak of the unchanged step.
    """

    problem: Problem
    plain_peak_bytes: int
    budgets: Sequence[int]
    outcomes: Sequence[Result | Infeasible]


def curve_of(
    name: str,
    sweep: Sweep,
    markers: Iterable[Marker] = (),
    again: Callable[[Result], tuple[Again, ...]] = nothing_again,
    holding: Sequence[str] = (),
) -> Curve:
    """Return the curve of a sweep over budgets.

    again: The recomputation of a plan, by segment. holding: The values that determine the lower bound, if the caller
    has better names than the problem.
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
            found_by=outcome.solver,
            finished=outcome.finished,
            again=again(outcome),
        )
        for budget, outcome in pairs
        if isinstance(outcome, Result)
    )
    refused = tuple(
        Refused(budget, outcome.reason, outcome.proved) for budget, outcome in pairs if isinstance(outcome, Infeasible)
    )
    return Curve(
        name,
        sweep.plain_peak_bytes,
        least.bytes,
        tuple(holding) or held_up_by(sweep.problem, least),
        points,
        refused,
        tuple(markers),
    )


def to_json(curves: Iterable[Curve]) -> str:
    """Print the curves as JSON: sizes in bytes, costs in percent of the plain step."""
    return json.dumps([asdict(curve) for curve in curves], indent=1) + "\n"
