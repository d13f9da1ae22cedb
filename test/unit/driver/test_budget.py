"""Budgets for real steps are met in the requested model, with a proof, or rejected with the proven minimum."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.func import FuncOp

from recompute.driver.api import memory, rewrite
from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.graph import Graph
from recompute.planning.liveness import peak_bytes
from recompute.planning.plan import Plan
from recompute.planning.simulate import as_graph, simulate
from recompute.planning.solvers import solve_graph
from recompute.planning.solvers.problem import Problem
from recompute.planning.solvers.result import NoPlan, refuse_without_plan
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.solve_graph import (
    PreparedGraph,
    bytes_within,
    plan_within,
    planner_within,
    problem_of_graph,
)
from recompute.planning.solvers.solvers_by_name import solve
from recompute.support.diagnostics import Refusal
from recompute.support.units import readable_bytes

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "stablehlo"
CHAIN = (EXAMPLES / "chain.small.mlir").read_text()


@pytest.mark.parametrize(
    ("budget", "target", "model", "share"),
    [
        ("50%", "none", "order", 0.5),
        ("50%", "stablehlo", "order", 0.5),
        ("50%", "stablehlo", "xla", 0.5),
        ("0.7", "none", "order", 0.7),
        ("9 KiB", "none", "order", 0.71),
        ("min", "none", "order", 0.2),
        ("min", "stablehlo", "xla", 0.43),
    ],
)
def test_a_budget_is_kept_and_the_step_proved_equal(budget: str, target: str, model: str, share: float) -> None:
    result = rewrite(CHAIN, RecomputeOptions(budget=budget, target=target, memory_model=model))
    assert result.proof is not None and result.proof.proved and result.copies
    before, after = result.memory(model)["main"]
    assert after.peak_bytes <= share * before.peak_bytes


@pytest.mark.slow("tied")
@pytest.mark.parametrize("example", ["paddle_fc", "tied"])
def test_examples_keep_a_budget_in_the_model_of_xla(example: str) -> None:
    """The budget is met with no more work than without a budget, and the remark states the error of the model."""
    text = (EXAMPLES / f"{example}.small.mlir").read_text()
    result = rewrite(text, RecomputeOptions(budget="75%"))
    before, after = result.memory("xla")["main"]
    assert result.proof is not None and result.proof.proved and after.peak_bytes <= 0.75 * before.peak_bytes
    assert result.extra_flops <= rewrite(text, RecomputeOptions(proof=False)).extra_flops
    assert "gives 0.93 to 1.11 times" in result.remarks[-1].reason


def test_budget_in_bytes_includes_arguments_and_results() -> None:
    result = rewrite(CHAIN, RecomputeOptions(budget="9 KiB", target="none"))
    before, after = result.memory()["main"]
    assert after.device_bytes <= 9 * 1024 < before.device_bytes
    with pytest.raises(Refusal, match="arguments and results of @main, which no plan changes, need 516 bytes"):
        rewrite(CHAIN, RecomputeOptions(budget="500B"))


def test_ample_budget_changes_nothing() -> None:
    for model in ("order", "xla"):
        result = rewrite(CHAIN, RecomputeOptions(budget="8GiB", memory_model=model))
        assert result.copies == 0 and result.remarks[-1].reason.startswith("no recomputation is needed: the step needs")
        before, after = result.memory(model)["main"]
        assert after == before


def graph_of_chain() -> Graph:
    seen = list[Graph]()

    def planner(graph: Graph) -> Plan:
        seen.append(graph)
        return Plan()

    rewrite(CHAIN, RecomputeOptions(planner=planner))
    return seen[0]


def test_problem_and_graph_have_equal_peaks() -> None:
    graph = graph_of_chain()
    problem = problem_of_graph(graph)
    assert evaluate(problem, sequence_of(problem, ())).peak_bytes == peak_bytes(graph)
    budget = peak_bytes(graph) * 6 // 10
    plan = plan_within(graph, budget)
    assert 0 < peak_bytes(as_graph(graph, simulate(graph, plan, keeps_barriers=False))) <= budget
    assert plan == planner_within("60%")(graph)


def test_prepared_graph_serves_several_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, other = graph_of_chain(), graph_of_chain()
    budgets = [peak_bytes(graph) * share // 10 for share in (6, 7)]
    plans = [plan_within(graph, budget) for budget in budgets]
    value, original = list[Graph](), solve_graph.problem_of_graph

    def counted(subject: Graph) -> Problem:
        value.append(subject)
        return original(subject)

    monkeypatch.setattr(solve_graph, "problem_of_graph", counted)
    prepared = PreparedGraph(graph)
    assert [plan_within(graph, budget, prepared=prepared) for budget in budgets] == plans
    assert value == [graph]
    assert plan_within(other, budgets[0], prepared=prepared) == plans[0]
    assert len(value) == 2 and value[1] is other


def test_search_starts_from_best_known_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal states no minimum within the budget, since the search starts from the best known plan."""

    def solve_only_with_starts(problem: Problem, budget: int, *, starts: Sequence[Any], **options: Any) -> Any:
        return solve(problem, budget, starts=starts, **options) if starts else refuse_without_plan(problem, "auto")

    graph = graph_of_chain()
    budget = bytes_within(graph, "min")
    monkeypatch.setattr(solve_graph, "solve", solve_only_with_starts)
    plan = plan_within(graph, budget)
    assert 0 < peak_bytes(as_graph(graph, simulate(graph, plan, keeps_barriers=False))) <= budget
    with pytest.raises(NoPlan, match=re.escape(f"the best plan found needs {readable_bytes(budget)}")):
        plan_within(graph, budget - 1)


def test_impossible_budget_is_rejected() -> None:
    with pytest.raises(
        Refusal,
        match=r"budget of 5% \(652 B of .* of temporaries\) .*: no plan needs less than 768 bytes, which are live "
        r"while stablehlo.sine \(chain.py:\d+:\d+\) executes: .*; the best plan found needs 1.0 KiB",
    ):
        rewrite(CHAIN, RecomputeOptions(budget="5%", memory_model="order"))
    best = r"the best of 7 candidates needs \d+\.\d KiB \(\d+ bytes\)"
    words = rf"no plan is within the budget of 20% .*by the XLA:CPU model: {best}"
    with pytest.raises(Refusal, match=words) as refusal:
        rewrite(CHAIN, RecomputeOptions(budget="20%"))
    assert isinstance(refusal.value.operation, FuncOp), "reported at the function, as in program order"
    with pytest.raises(NoPlan, match="budget of -5 bytes of temporaries"):
        plan_within(graph_of_chain(), -5)


def test_remark_names_loops_only_for_a_step_with_loops() -> None:
    remarks = [remark.reason for remark in rewrite(CHAIN, RecomputeOptions(budget="75%")).remarks]
    assert any(reason.startswith("budget of 75%") for reason in remarks) and "loops=" not in " ".join(remarks)


def chain_of_exponentials(dead: int) -> str:
    """Return six values that are read again in reverse; while all are live, `dead` unused values are computed one by
    one."""
    tensor = "tensor<64xf32>"
    lines = [f'%h0 = stablehlo.sine %x : {tensor} loc("jit(s)/jvp(a)/sin")']
    lines += [f'%h{at + 1} = stablehlo.exponential %h{at} : {tensor} loc("jit(s)/jvp(a)/exp")' for at in range(5)]
    for at in range(dead):
        before = f"%d{at - 1}" if at else "%h5"
        lines.append(f'%d{at} = stablehlo.add {before}, %h5 : {tensor} loc("jit(s)/jvp(a)/add")')
    lines.append(f'%g5 = stablehlo.multiply %ct, %h5 : {tensor} loc("jit(s)/transpose(jvp(a))/mul")')
    for at in reversed(range(5)):
        lines.append(f'%g{at} = stablehlo.multiply %g{at + 1}, %h{at} : {tensor} loc("jit(s)/transpose(jvp(a))/mul")')
    body = "\n  ".join([*lines, f"func.return %g0 : {tensor}"])
    return f"func.func @main(%x: {tensor}, %ct: {tensor}) -> {tensor} {{\n  {body}\n}}"


@pytest.mark.parametrize(("dead", "values", "budget"), [(0, 7, "58%"), (2, 8, "51%")])
def test_dead_code_is_dropped_before_planning(dead: int, values: int, budget: str) -> None:
    """Dead code is dropped before planning, so that it does not count as memory that no plan changes."""
    text = chain_of_exponentials(dead)
    assert memory(text)["main"].peak_bytes == values * 256
    result = rewrite(text, RecomputeOptions(budget=budget, target="none"))
    assert result.memory()["main"][1].peak_bytes == 1024 and result.copies == 3


@pytest.mark.slow("800", "832", "896", "960")
@pytest.mark.parametrize("budget", range(768, 1024, 32))
def test_larger_budget_never_loses_a_plan(budget: int) -> None:
    """There is a plan for every budget from the bytes of three values on."""
    seen = list[Graph]()
    rewrite(chain_of_exponentials(0), RecomputeOptions(planner=lambda graph: (seen.append(graph), Plan())[1]))
    plan = plan_within(seen[0], budget)
    assert peak_bytes(as_graph(seen[0], simulate(seen[0], plan, keeps_barriers=False))) == 768


def test_proven_minimum_counts_required_live_values() -> None:
    """The minimum includes the random bits of the second layer, which are live while the first layer's input is
    needed."""
    mlp = (EXAMPLES / "mlp.small.mlir").read_text()
    with pytest.raises(
        Refusal,
        match=r"no plan needs less than 37.1 KiB \(37960 bytes\), which are live while stablehlo.while .* executes: ",
    ):
        rewrite(mlp, RecomputeOptions(budget="50%", target="none"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (RecomputeOptions(budget="much"), "invalid budget 'much'"),
        (RecomputeOptions(budget="3 apples"), "invalid budget '3 apples'"),
        (RecomputeOptions(budget="50%", planner=lambda _: Plan()), "give planner= or budget=, not both"),
    ],
)
def test_invalid_combinations_of_options_are_rejected(options: RecomputeOptions, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        rewrite(CHAIN, options)
