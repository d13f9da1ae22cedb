"""Solvers' plans with fewer and fewer copies: programs that compute the same, for less work each."""

from __future__ import annotations

from pathlib import Path

from recompute.driver.api import rewrite
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import DEFAULT, RecomputeOptions
from recompute.planning.graph import Graph
from recompute.planning.plan import Plan
from recompute.planning.solvers.solve_graph import planner_within
from recompute.search.candidates import SOLVED, candidates, with_fewer_groups

CHAIN = (Path(__file__).resolve().parents[3] / "examples" / "stablehlo" / "chain.small.mlir").read_text()


def test_fewer_copies_are_proved_equal() -> None:
    thinned = list[Plan]()

    def whole(graph: Graph) -> Plan:
        plan = planner_within("60%")(graph)
        thinned.extend(one for _, one in with_fewer_groups(graph, plan, 3))
        assert all(0 < one.copies < plan.copies for one in thinned)
        return plan

    rewrite(CHAIN, RecomputeOptions(planner=whole))
    assert len(thinned) >= 4
    for one in thinned:
        done = rewrite(CHAIN, RecomputeOptions(planner=lambda _, one=one: one))
        assert done.proof is not None and done.proof.proved and done.copies == one.copies


def test_they_are_among_what_is_chosen_from() -> None:
    found = candidates(parse_module(CHAIN, "chain"), DEFAULT)
    solved = [one for one in found if one.prediction.kind == SOLVED]
    fewer = [one for one in solved if one.words.endswith("places")]
    whole = [one for one in solved if one not in fewer]
    assert fewer and min(one.prediction.work for one in fewer) < min(one.prediction.work for one in whole)
