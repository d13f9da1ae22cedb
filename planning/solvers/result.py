"""What a solver says: copies and what they cost, beside the proven bound; or why there are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .problem import Pair, Problem

Stop = Callable[[], bool]
"""Asked now and then whether to end."""
Progress = Callable[[str], None]
"""Told what is being done, a line at a time."""


def never() -> bool:
    return False


class NoPlan(Exception):
    """There is none within the budget, or none was found; `str()` says why, and what the least is."""


@dataclass(frozen=True)
class Result:
    """Copies within the budget: `pairs` of the `problem`, which has operations for copies of views, where there are
    some, among the others. `peak_bytes` and `extra_cost` are those of the flat sequence. `percent` and
    `bound_percent` are of the cost of the plain step. `solver`: who found them. `path`: compiled or plain. `finished`:
    False where a clock or an interrupt ended the search."""

    problem: Problem
    pairs: frozenset[Pair]
    budget: int
    peak_bytes: int
    extra_cost: int
    percent: float
    bound_percent: float
    bound_by: str
    solver: str
    seconds: float
    path: str
    finished: bool = True

    @property
    def gap(self) -> float:
        """How far the plan may be from the cheapest one, in points of percent."""
        return max(0.0, self.percent - self.bound_percent)


@dataclass(frozen=True)
class Refusal:
    """`reason`, in words. `proved`: no schedule keeps the budget; else none was found. `minimum_bytes`: no schedule
    needs less, proved; `holding`: what is alive there, by name."""

    reason: str
    proved: bool
    minimum_bytes: int
    holding: tuple[str, ...] = ()
