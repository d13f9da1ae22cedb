"""A budget for a real step: kept as it is written, proved equal, or refused with the proven minimum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from recompute.dialects.diagnostics import Refusal
from recompute.driver.api import Rewritten, rewrite
from recompute.driver.budget import rewrite_within
from recompute.driver.request import Request
from recompute.planning.evaluate import peak_bytes
from recompute.planning.graph import Graph
from recompute.planning.plan import Plan
from recompute.planning.plan_file import StepPlan
from recompute.planning.rewriting import as_graph, carried_out
from recompute.planning.solvers.of_graph import plan_within, planner_within, problem_of_graph
from recompute.planning.solvers.result import NoPlan
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.transforms.clone import Planner

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "stablehlo"
CHAIN = (EXAMPLES / "chain.small.mlir").read_text()


@pytest.mark.parametrize(
    ("budget", "target", "share"),
    [
        ("50%", "none", 0.5),
        ("50%", "stablehlo", 0.5),
        ("0.7", "none", 0.7),
        ("9 KiB", "none", 0.71),
        ("min", "none", 0.45),
    ],
)
def test_a_budget_is_kept_and_the_step_proved_equal(budget: str, target: str, share: float) -> None:
    done = rewrite(CHAIN, Request(budget=budget, target=target))
    assert done.proof is not None and done.proof.proved and done.copies
    before, after = done.memory()["main"]
    assert after.peak_bytes <= share * before.peak_bytes


def test_nothing_to_do() -> None:
    done = rewrite(CHAIN, Request(budget="8GiB"))
    assert done.copies == 0 and "nothing is recomputed" in done.remarks[-1].reason


def graph_of_chain() -> Graph:
    seen = list[Graph]()

    def planner(graph: Graph) -> Plan:
        seen.append(graph)
        return Plan()

    rewrite(CHAIN, Request(planner=planner))
    return seen[0]


def test_the_problem_counts_as_the_graph_does() -> None:
    graph = graph_of_chain()
    problem = problem_of_graph(graph)
    assert evaluate(problem, sequence_of(problem, ())).peak_bytes == peak_bytes(graph)
    budget = peak_bytes(graph) * 6 // 10
    plan = plan_within(graph, budget)
    assert 0 < peak_bytes(as_graph(graph, carried_out(graph, plan, ordered=False))) <= budget
    assert plan == planner_within("60%")(graph)


def test_a_budget_that_nothing_keeps() -> None:
    with pytest.raises(Refusal, match=r"no plan within 500 bytes of temporaries .*: no plan needs less than \d+ byt"):
        rewrite(CHAIN, Request(budget="500B"))
    with pytest.raises(NoPlan, match="no plan within -5 bytes"):
        plan_within(graph_of_chain(), -5)


def test_what_is_written_above_the_budget_is_planned_again() -> None:
    """A rewrite that always loses what the plan says is refused, in words."""
    left = rewrite(CHAIN, Request(budget="8GiB"))
    graph = graph_of_chain()
    asked = list[int]()

    def rewritten(planner: Planner) -> Rewritten:
        asked.append(planner(graph).copies)
        return replace(left, plans=(StepPlan("main", graph.fingerprint, Plan()),))

    with pytest.raises(Refusal, match=r"no plan within|no plan keeps the budget of 90% as it is written"):
        rewrite_within("90%", rewritten)
    assert asked == sorted(asked) and len(asked) > 1


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Request(budget="much"), "'much' is no budget"),
        (Request(budget="50%", planner=lambda _: Plan()), "a request has a plan, a planner or a budget"),
    ],
)
def test_misuse(request_: Request, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        rewrite(CHAIN, request_)
