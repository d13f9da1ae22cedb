"""A plan of the solvers for a graph, which ends with the best so far when it is to stop."""

from __future__ import annotations

from collections.abc import Callable

from ...planning.evaluate import peak_bytes
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...planning.solvers.auto import Effort
from ...planning.solvers.incumbent import Incumbent
from ...planning.solvers.of_graph import carried_within, problem_of_graph
from ...planning.solvers.registry import solve
from ...planning.solvers.result import NoPlan, Refusal, Result


def plan_within(graph: Graph, budget: int, chain: bool = False, stop: Callable[[], bool] | None = None) -> Plan:
    """`budget`: bytes of temporaries in program order. `chain`: see `plan_of_pairs`. Raises `NoPlan`."""
    if peak_bytes(graph) <= budget:
        return Plan()
    problem = problem_of_graph(graph)

    def solved(asked: int) -> Result | Refusal:
        best = Incumbent(problem, asked) if stop is None else Incumbent(problem, asked, interrupt=stop)
        return solve(problem, asked, best=best, effort=Effort.brief())

    found = carried_within(graph, problem, budget, solved, chain)
    if isinstance(found, Refusal):
        raise NoPlan(found.reason)
    return found.plan
