"""The results of the solvers: copies with their cost and a lower bound on the cost, or the reason why there are
none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...support.units import readable_bytes
from ..plan import Optimality
from .problem import Pair, Problem
from .provenance import Provenance
from .working_set import describe_working_set, largest_working_set

Stop = Callable[[], bool]
"""A predicate that a search polls. Once it returns true, the search ends with the best result so far."""
Progress = Callable[[str], None]
"""A callback for progress messages of one line each."""


def never_stop() -> bool:
    """Return false. This is the `Stop` predicate of a search without a limit."""
    return False


NameOfOperation = Callable[[int], str]
"""A function that returns the name of an operation for messages, given its index in the graph."""
LIVE = ", which are live "
"""The phrase of a message between a lower bound and the operation and values that determine it."""


class NoPlan(Exception):
    """The error for a budget for which no plan exists or was found.

    Attributes:
        budget: The budget as a phrase.
        reason: A callback that formats the reason, including the lower bound on the peak and the lowest peak reached.
            Its argument maps an operation index to a name: the planner knows operations by their indices, and its
            caller knows their source lines.
    """

    def __init__(self, budget: str, reason: Callable[[NameOfOperation | None], str]):
        super().__init__(budget)
        self.budget = budget
        self.reason = reason

    def text(self, name: NameOfOperation | None = None) -> str:
        """Return the message. `name`: a function that names operations. If it is None, the message uses their indices
        and kinds."""
        return f"no plan is within the budget {self.budget}: {self.reason(name)}"

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class Result:
    """Copies within the budget.

    Attributes:
        problem, pairs: The problem and the copies. Copies of views are operations of the problem.
        budget: The budget in bytes.
        peak_bytes, extra_cost: The peak and the extra cost of the flat order of execution.
        percent, bound_percent: The extra cost and its lower bound, in percent of the cost of the plain step.
        bound_by: The method that found the bound.
        provenance: The solver and the improvements that found the copies.
        seconds: The time of the search.
        path: `compiled` if numba compiled the inner loops; `plain` if they ran as plain Python.
        finished: Whether the search was completed; false if a time limit or an interrupt ended it.
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
    def optimality(self) -> Optimality:
        """The distance to the cheapest plan."""
        return Optimality(self.percent, self.bound_percent, self.bound_by)


@dataclass(frozen=True)
class Infeasible:
    """The outcome of a solver that has no plan within the budget.

    Attributes:
        reason: The reason as a string.
        proved: Whether it is proved that no schedule is within the budget. If false, no schedule was found.
        minimum_bytes: The proven lower bound on the peak of every schedule.
        holding: The names of the values that make up this bound.
        finished: Whether the search was completed; false if a time limit or an interrupt ended it.
    """

    reason: str
    proved: bool
    minimum_bytes: int
    holding: tuple[str, ...] = ()
    finished: bool = True


def refusal(problem: Problem, budget: int) -> Infeasible | None:
    """Return the refusal if the largest working set exceeds the budget, so that no schedule can meet the budget;
    otherwise None."""
    least = largest_working_set(problem)
    if least.bytes <= budget:
        return None
    return infeasible(problem, minimum_clause(least.bytes), True)


def minimum_clause(minimum_bytes: int) -> str:
    """Return the clause that gives a proven lower bound on the peak."""
    return f"no plan needs less than {readable_bytes(minimum_bytes)}"


def refuse_without_plan(problem: Problem, solver: str) -> Infeasible:
    """Return the refusal of a solver that found no plan, without a proof that none exists."""
    reason = f"{solver} found no plan within the budget, but it is not proved that none exists"
    return infeasible(problem, reason, False)


def refuse_after_end(problem: Problem) -> Infeasible:
    """Return the refusal of a search that a limit or an interrupt ended before it found a plan."""
    reason = "the search ended before it found a plan, but it is not proved that none exists"
    return replace(infeasible(problem, reason, False), finished=False)


def refuse_without_ortools(problem: Problem) -> Infeasible:
    """Return the refusal of the solver `windows` if OR-tools is not installed."""
    return infeasible(problem, "windows needs OR-tools: pip install 'xdsl-recompute[plan]'", False)


def infeasible(problem: Problem, reason: str, proved: bool) -> Infeasible:
    """Return a refusal with this reason. It contains the problem's largest working set, whose size is a lower bound on
    the peak of every plan."""
    least = largest_working_set(problem)
    return Infeasible(reason, proved, least.bytes, describe_working_set(problem, least))
