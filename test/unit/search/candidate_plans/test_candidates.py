"""Variants of a solver's plan with fewer and fewer copies: each computes the same results with less work."""

from __future__ import annotations

from pathlib import Path

from recompute.driver.api import rewrite
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from recompute.planning.graph import Graph
from recompute.planning.plan import Plan
from recompute.planning.solvers.solve_graph import planner_within
from recompute.search.candidate_plans.plan_origin import PlanSource
from recompute.search.candidate_plans.plan_reduction import group_subsets, with_groups
from recompute.search.candidate_plans.pool import Pool

CHAIN = (Path(__file__).resolve().parents[4] / "examples" / "stablehlo" / "chain.small.mlir").read_text()


def test_fewer_copies_are_proved_equal() -> None:
    thinned = list[Plan]()

    def whole(graph: Graph) -> Plan:
        plan = planner_within("60%")(graph)
        thinned.extend(with_groups(graph, groups) for fewer in group_subsets(plan, 3) for groups in fewer)
        assert all(0 < entry.copies < plan.copies for entry in thinned)
        return plan

    rewrite(CHAIN, RecomputeOptions(planner=whole))
    assert len(thinned) >= 4
    for item in thinned:
        result = rewrite(CHAIN, RecomputeOptions(planner=lambda _, entry=item: entry))
        assert result.proof is not None and result.proof.proved and result.copies == item.copies


def test_plans_with_fewer_copies_are_candidates() -> None:
    pool = Pool.of(parse_module(CHAIN, "chain"), DEFAULT_OPTIONS)
    pool.search(lambda prediction: prediction.need / 0.8)
    solved = [candidate for candidate in pool.candidates if candidate.prediction.kind == (PlanSource.SOLVER,)]
    fewer = [candidate for candidate in solved if candidate.words.endswith("places")]
    whole = [candidate for candidate in solved if candidate not in fewer]
    assert fewer and min(candidate.prediction.work for candidate in fewer) < max(
        candidate.prediction.work for candidate in whole if candidate.prediction.need <= 0.8
    )


def test_search_visits_few_plans_and_keeps_earlier_order() -> None:
    pool = Pool.of(parse_module(CHAIN, "chain"), DEFAULT_OPTIONS)
    before = list(pool.candidates)
    pool.search(lambda prediction: prediction.need / 0.8)
    visited = list(pool.candidates)
    assert before == visited[: len(before)] and len(before) < len(visited) <= len(before) + 40
    pool.search(lambda prediction: prediction.need / 0.8)
    assert pool.candidates == visited
    pool.search(lambda prediction: prediction.need / 0.6)
    assert pool.candidates[: len(visited)] == visited


def test_stopped_search_adds_no_candidates() -> None:
    pool = Pool.of(parse_module(CHAIN, "chain"), DEFAULT_OPTIONS)
    before = list(pool.candidates)
    pool.search(lambda prediction: prediction.need / 0.8, lambda: True)
    assert pool.candidates == before
