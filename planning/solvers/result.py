"""Results of the solvers: copies with their cost and its lower bound, or the reason that there are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...support.units import readable_bytes
from .problem import Pair, Problem
from .provenance import Provenance
from .working_set import describe_working_set, largest_working_set

Stop = Callable[[], bool]
"""A predicate that a search polls. Once it is true, the search ends with the best result so far."""
Progress = Callable[[str], None]
"""A callback for progress messages, one line each."""


def never() -> bool:
    """Return false: the predicate of a search without limit."""
    return False


class NoPlan(Exception):
    """No plan within the budget exists, or none was found; the message gives the reason and the least budget."""


@dataclass(frozen=True)
class Result:
    """Copies within the budget.

    Attributes:
        problem, pairs: The copies and their problem, in which copies of views are operations.
        budget: The budget in bytes.
        peak_bytes, extra_cost: The peak and the extra cost of the flat order.
        percent, bound_percent: The extra cost and its lower bound, in percent of the cost of the plain step.
        bound_by: The method that found the bound.
        provenance: The solver and the improvements that found the copies.
        seconds: The time of the search.
        path: Whether the inner loops were `compiled` or `plain` Python.
        finished: Whether the search was completed, not stopped by a time limit or an interrupt.
    """

    problem: Problem
    pairs: frozenset[Pair]
    budget: int
    peak_bytes: int
    extra_cost: int
    percent: float
    bound_percent: float
    bound_by: str
    provenance: Provenance
    seconds: float
    path: str
    finished: bool = True

    @property
    def gap(self) -> float:
        """An upper bound of the distance to the cheapest plan, in percentage points of the cost of the plain step."""
        return max(0.0, self.percent - self.bound_percent)


@dataclass(frozen=True)
class Infeasible:
    """No plan within the budget.

    Attributes:
        reason: The reason as a string.
        proved: Whether it is proved that no schedule is within the budget; otherwise none was found.
        minimum_bytes: The proven lower bound of the peak of all schedules.
        holding: The values that make up this bound, by name.
    """

    reason: str
    proved: bool
    minimum_bytes: int
    holding: tuple[str, ...] = ()


def refusal(problem: Problem, budget: int) -> Infeasible | None:
    """Return the refusal if the largest working set exceeds the budget, so that no schedule can meet it; None
    otherwise."""
    least = largest_working_set(problem)
    if least.bytes <= budget:
        return None
    return infeasible(problem, f"no plan needs less than {readable_bytes(least.bytes)}", True)


def refuse_without_plan(problem: Problem, solver: str) -> Infeasible:
    """Return the refusal of a solver that found no plan, without a proof that none exists."""
    reason = f"{solver} found no plan within the budget, but it is not proved that none exists"
    return infeasible(problem, reason, False)


def refuse_after_end(problem: Problem) -> Infeasible:
    """Return the refusal of a search that a limit or an interrupt ended before it found a plan."""
    return infeasible(problem, "the search ended before it found a plan, but it is not proved that none exists", False)


def refuse_without_ortools(problem: Problem) -> Infeasible:
    """Return the refusal of the solver `windows` without OR-tools."""
    return infeasible(problem, "windows needs OR-tools: pip install 'xdsl-recompute[plan]'", False)


def infeasible(problem: Problem, reason: str, proved: bool) -> Infeasible:
    """Return a refusal, with the largest working set of the problem as the lower bound for every plan."""
    least = largest_working_set(problem)
    return Infeasible(reason, proved, least.bytes, describe_working_set(problem, least))
