"""Refusals: no plan exists, none was found, or the solver is not installed."""

from __future__ import annotations

from .problem import Problem
from .result import Infeasible
from .working_set import held_up_by, largest_working_set


def refusal(problem: Problem, budget: int) -> Infeasible | None:
    """The refusal if a single working set exceeds the budget, so that no schedule exists; else None."""
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
