"""Results of the solvers: a schedule with its cost and bounds, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .problem import Pair, Problem
from .working_set import held_up_by, largest_working_set

Stop = Callable[[], bool]
"""A predicate that searches poll; they end once it is true."""
Progress = Callable[[str], None]
"""A callback for progress messages, one line each."""


def never() -> bool:
    return False


class NoPlan(Exception):
    """No plan within the budget exists or was found; the message has the reason and the least budget."""


@dataclass(frozen=True)
class Result:
    """Copies within the budget.

    problem, pairs: the copies and their problem, which includes operations for copies of views.
    peak_bytes, extra_cost: of the flat sequence.
    percent, bound_percent: extra cost and its lower bound, in percent of the cost of the plain step.
    bound_by, solver: the methods that found the bound and the copies.
    path: `compiled` or `plain` inner loops.
    finished: False if a time limit or an interrupt ended the search.
    """

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
        """Upper bound of the distance to the cheapest plan, in percentage points."""
        return max(0.0, self.percent - self.bound_percent)


@dataclass(frozen=True)
class Infeasible:
    """No plan within the budget.

    reason: as text. proved: no schedule keeps the budget; False if none was found.
    minimum_bytes: proven lower bound of any schedule. holding: the values that are live there, by name.
    """

    reason: str
    proved: bool
    minimum_bytes: int
    holding: tuple[str, ...] = ()


def refusal(problem: Problem, budget: int) -> Infeasible | None:
    """Return the refusal if a single working set exceeds the budget, so that no schedule exists; else None."""
    least = largest_working_set(problem)
    if least.bytes <= budget:
        return None
    return impossible(problem, f"no plan needs less than {least.bytes} bytes", True)


def nothing_found(problem: Problem, solver: str) -> Infeasible:
    return impossible(problem, f"{solver} finds no plan within the budget, and none is proved impossible", False)


def ended(problem: Problem) -> Infeasible:
    return impossible(problem, "the search was ended before it found a plan, and none is proved impossible", False)


def not_installed(problem: Problem) -> Infeasible:
    return impossible(problem, "windows needs OR-tools: pip install 'xdsl-recompute[plan]'", False)


def impossible(problem: Problem, reason: str, proved: bool) -> Infeasible:
    least = largest_working_set(problem)
    return Infeasible(reason, proved, least.bytes, held_up_by(problem, least))
