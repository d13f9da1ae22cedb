"""What memory costs: for each of many budgets the extra work of the plan that was found, and the least that is proved.

A curve is plain data; `curve_chart.py` and `curve_html.py` draw it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from ..planning.solvers.problem import Problem
from ..planning.solvers.result import Refusal, Result
from ..planning.solvers.working_set import held_up_by, largest_working_set


@dataclass(frozen=True)
class Again:
    """What runs again of one segment ("": outside of all): so many executions, their cost in percent of the step, and
    the values that cost most, by name and source line."""

    segment: str
    executions: int
    percent: float
    values: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """A budget that is kept: `percent` is the extra cost, of which `bound_percent` is proved to be needed, None where
    nothing is proved in the model that counts. `finished`: False where the search was cut short."""

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
    """A budget without a plan. `proved`: there is none; else none was found."""

    budget_bytes: int
    reason: str
    proved: bool


@dataclass(frozen=True)
class Marker:
    """What somebody else's planner does, counted here."""

    name: str
    peak_bytes: int
    percent: float


@dataclass(frozen=True)
class Curve:
    """Of `name`, from small budgets to large ones. No plan needs less than `minimum_bytes`, which is proved, because of
    what `holding` names; 0 bytes where nothing is proved."""

    name: str
    plain_peak_bytes: int
    minimum_bytes: int
    holding: tuple[str, ...]
    points: tuple[Point, ...]
    refused: tuple[Refused, ...]
    markers: tuple[Marker, ...] = ()


def nothing_again(_: Result) -> tuple[Again, ...]:
    return ()


def curve_of(
    name: str,
    problem: Problem,
    plain_peak_bytes: int,
    budgets: Sequence[int],
    outcomes: Sequence[Result | Refusal],
    markers: Iterable[Marker] = (),
    again: Callable[[Result], tuple[Again, ...]] = nothing_again,
    holding: Sequence[str] = (),
) -> Curve:
    """`again`: what a plan computes again, by name. `holding`: what the minimum is held up by, where the caller has
    better names than the problem."""
    least = largest_working_set(problem)
    pairs = sorted(zip(budgets, outcomes, strict=True), key=lambda one: one[0])
    points = tuple(
        Point(
            budget_bytes=budget,
            peak_bytes=one.peak_bytes,
            percent=one.percent,
            bound_percent=one.bound_percent,
            bound_by=one.bound_by,
            found_by=one.solver,
            finished=one.finished,
            again=again(one),
        )
        for budget, one in pairs
        if isinstance(one, Result)
    )
    refused = tuple(Refused(budget, one.reason, one.proved) for budget, one in pairs if isinstance(one, Refusal))
    return Curve(
        name,
        plain_peak_bytes,
        least.bytes,
        tuple(holding) or held_up_by(problem, least),
        points,
        refused,
        tuple(markers),
    )


def to_json(curves: Iterable[Curve]) -> str:
    """Sizes in bytes, costs in percent of the plain step."""
    return json.dumps([asdict(curve) for curve in curves], indent=1) + "\n"
