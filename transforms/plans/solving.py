"""A plan of the solvers for a graph, which ends with the best so far when it is to stop."""

from __future__ import annotations

from collections.abc import Callable

from ...planning.evaluate import peak_bytes
from ...planning.graph import Graph
from ...planning.held_over import HeldOver, held_over
from ...planning.plan import Plan
from ...planning.solvers.auto import Effort
from ...planning.solvers.budgets import in_words
from ...planning.solvers.incumbent import Incumbent
from ...planning.solvers.of_graph import carried_within, problem_of_graph
from ...planning.solvers.problem import Problem
from ...planning.solvers.registry import solve
from ...planning.solvers.result import NoPlan, Refusal, Result
from ...planning.solvers.sweep import least_budget
from ...planning.solvers.working_set import largest_working_set


def plan_within(graph: Graph, budget: int, chain: bool = False, stop: Callable[[], bool] | None = None) -> Plan:
    """`budget`: bytes of temporaries in program order. `chain`: see `plan_of_pairs`. Raises `NoPlan`."""
    if peak_bytes(graph) <= budget:
        return Plan()
    problem = problem_of_graph(graph)
    words = f"no plan within {budget} bytes of temporaries ({in_words(budget)})"
    if (held := held_over(problem)).bytes > max(budget, largest_working_set(problem).bytes):
        raise NoPlan(f"{words}: no plan needs less than {held.bytes} bytes: {held.said(problem)}")

    def solved(asked: int) -> Result | Refusal:
        best = Incumbent(problem, asked) if stop is None else Incumbent(problem, asked, interrupt=stop)
        return solve(problem, asked, best=best, effort=Effort.brief())

    found = carried_within(graph, problem, budget, solved, chain)
    if isinstance(found, Refusal):
        raise NoPlan(found.reason if found.proved else f"{found.reason}; {_reached(problem, held, stop)}")
    return found.plan


def _reached(problem: Problem, held: HeldOver, stop: Callable[[], bool] | None) -> str:
    """What can be said of the least: what was found, and what is proved."""
    least = least_budget(problem) if stop is None else least_budget(problem, stop)
    proved = max(held.bytes, largest_working_set(problem).bytes)
    return f"the least that was found needs {least} bytes, and none needs less than {proved}"
