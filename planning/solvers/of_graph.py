"""From the graph of a step to a problem, and from copies back to a plan: a planner that keeps a budget.

    RecomputeOptions(planner=planner_within("8GiB"))

The budget is for temporaries in program order, as `evaluate.peak_bytes` counts them: neither what comes from outside
nor what is returned. A share is one of the plain step's. Forward operations may run again, in front of the backward
pass's; what the plan needs is counted on the rewritten graph, not believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ...support.units import format_bytes, parse_budget
from ..evaluate import Counted, peak_bytes
from ..graph import Graph
from ..held_over import HeldOver, held_over
from ..pairs import plan_of_pairs
from ..plan import Plan
from ..rewriting import as_graph, carried_out
from .effort import SMALL, Effort
from .incumbent import Incumbent
from .problem import OperationRow, Pair, Problem, problem_of
from .registry import solve
from .result import NoPlan, Refusal, Result, never
from .sweep import least_budget
from .working_set import held_up_by, largest_working_set

ROUNDS = 5
"""So often the budget is lowered by what the rewritten graph needs beyond it."""


def problem_of_graph(graph: Graph) -> Problem:
    """Its operations are the graph's, by number. Views are no executions: they are looked through, and `with_views`
    copies those that a copy needs. Costs are the graph's, and one for each execution."""
    counted = Counted.of(graph)
    number = {int(owner): at for at, owner in enumerate(counted.owners)}
    assert [int(one) for one in counted.makers] == sorted(int(one) for one in counted.makers), (
        "storages by their makers"
    )
    backward = [not one for one in graph.forward]
    first = next((op for op in range(len(graph)) if graph.gradient[op]), len(graph))
    rows = [
        OperationRow(
            name=graph.names[op],
            cost=graph.cost[op] + 1,
            reads=[number[root] for v in graph.reads[op] if (root := graph.root[v]) in number],
            makes=[graph.sizes[v] for v in graph.makes[op] if v in number],
            inner=graph.inner_bytes[op],
            again=_may_run_again(graph, op),
            backward=backward[op],
        )
        for op in range(len(graph))
    ]
    names = [f"{graph.names[int(maker)]} ({int(maker)})" for maker in counted.makers]
    return problem_of(rows, (), names, earliest=first)


def _may_run_again(graph: Graph, op: int) -> bool:
    """What a copy would be one of: a forward operation without effects that makes all that it returns."""
    plain = graph.forward[op] and graph.effects[op] is None and op not in graph.copies and op not in graph.literals
    return plain and op not in graph.showing and bool(graph.makes[op])


def with_views(graph: Graph, pairs: Iterable[Pair]) -> set[Pair]:
    """The copies, and with each those of the views of what it makes that are read behind it: else who reads through a
    view would read the storage of before."""
    found = set(pairs)
    for place, op in list(found):
        stack = list(graph.makes[op])
        while stack:
            value = stack.pop()
            for reader in graph.readers[value]:
                if reader < place and reader in graph.casts and (place, reader) not in found:
                    found.add((place, reader))
                    stack += graph.makes[reader]
    return found


def plan_within(
    graph: Graph, budget: int, solver: str = "auto", chain: bool = False, stop: Callable[[], bool] = never
) -> Plan:
    """`budget`: bytes of temporaries in program order. `chain`: see `plan_of_pairs`; for executors that start what they
    can. Once it is to `stop`, the plan is the best so far.

    Raises `NoPlan`, and `ValueError` for an unknown solver."""
    if peak_bytes(graph) <= budget:
        return Plan()
    problem = problem_of_graph(graph)
    words = f"no plan within {budget} bytes of temporaries ({format_bytes(budget)})"
    if (held := held_over(problem)).bytes > max(budget, largest_working_set(problem).bytes):
        raise NoPlan(f"{words}: no plan needs less than {held.bytes} bytes: {held.said(problem)}")

    def searched(asked: int, effort: Effort) -> Result | Refusal:
        return solve(problem, asked, solver, best=Incumbent(problem, asked, interrupt=stop), effort=effort)

    def solved(asked: int) -> Result | Refusal:
        found = searched(asked, Effort.brief())
        is_open = isinstance(found, Refusal) and not found.proved and len(problem) <= SMALL and not stop()
        return searched(asked, Effort.once_more()) if is_open else found

    found = carried_within(graph, problem, budget, solved, chain)
    if isinstance(found, Refusal):
        raise NoPlan(found.reason if found.proved else f"{found.reason}; {_reached(problem, held, stop)}")
    return found.plan


def _reached(problem: Problem, held: HeldOver, stop: Callable[[], bool]) -> str:
    """What can be said of the least: what was found, and what is proved."""
    proved = max(held.bytes, largest_working_set(problem).bytes)
    return f"the least that was found needs {least_budget(problem, stop)} bytes, and none needs less than {proved}"


@dataclass(frozen=True)
class Carried:
    """A plan that keeps the budget once it is carried out, and what the solver says of it: `result.peak_bytes` is
    counted on the rewritten graph, and the bound is for the budget that was asked for first."""

    plan: Plan
    result: Result


def carried_within(
    graph: Graph, problem: Problem, budget: int, solved: Callable[[int], Result | Refusal], chain: bool = False
) -> Carried | Refusal:
    """`problem`: the graph's. Less is asked for where the rewritten graph needs more than what was `solved`."""
    asked, needed, first = budget, 0, None
    for _ in range(ROUNDS):
        outcome = solved(asked) if asked > 0 else None
        if outcome is None or isinstance(outcome, Refusal):
            proved = outcome is not None and outcome.proved and asked == budget
            return _refused(problem, _why(problem, budget, outcome, needed), proved)
        first = first or outcome
        plan = plan_of_pairs(graph, with_views(graph, outcome.pairs), chain=chain)
        needed = peak_bytes(as_graph(graph, carried_out(graph, plan, ordered=False)))
        if needed <= budget:
            bound = min(first.bound_percent, outcome.percent)
            kept = replace(outcome, budget=budget, peak_bytes=needed, bound_percent=bound, bound_by=first.bound_by)
            return Carried(plan, kept)
        asked = min(asked, outcome.peak_bytes) - (needed - budget)
    why = f"no plan within {budget} bytes of temporaries survives being written: the last one needs {needed}"
    return _refused(problem, why, proved=False)


def _refused(problem: Problem, reason: str, proved: bool) -> Refusal:
    least = largest_working_set(problem)
    return Refusal(reason, proved, least.bytes, held_up_by(problem, least))


def _why(problem: Problem, budget: int, refused: Refusal | None, needed: int) -> str:
    """`needed`: by a plan that came out larger than was asked for, 0 where there was none."""
    words = f"no plan within {budget} bytes of temporaries ({format_bytes(budget)})"
    if refused is None:
        working = largest_working_set(problem)
        return f"{words}: no plan needs less than {working.bytes} bytes: {', '.join(held_up_by(problem, working))}"
    if needed and refused.minimum_bytes <= budget:
        return (
            f"{words} survives being written: the last one needs {needed}; none needs less than {refused.minimum_bytes}"
        )
    least = f"no plan needs less than {refused.minimum_bytes} bytes"
    minimum = f"{'' if refused.reason == least else f'; {least}'}: {', '.join(refused.holding)}"
    return f"{words}: {refused.reason}{minimum if refused.minimum_bytes else ''}"


def planner_within(budget: str, less: int = 0) -> Callable[[Graph], Plan]:
    """A planner for budgets as users write them: `8GiB`, `50%`, `0.5`, `min`. `less`: bytes that are left free of it.

    Raises `ValueError` for what is no budget; the planner raises `NoPlan`.
    """
    parse_budget(budget, 1)
    return lambda graph: plan_within(graph, bytes_within(graph, budget) - less)


def bytes_within(graph: Graph, budget: str) -> int:
    """The budget in bytes of temporaries of this step."""
    wanted = parse_budget(budget, peak_bytes(graph))
    return least_budget(problem_of_graph(graph)) if wanted is None else wanted
