"""Pairs of a planner of somebody else that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from recompute.driver.api import rewrite
from recompute.driver.request import Request
from recompute.planning.graph import Graph
from recompute.planning.pairs import plan_of_pairs
from recompute.planning.plan import Plan

CHAIN = (Path(__file__).resolve().parents[3] / "examples" / "stablehlo" / "chain.small.mlir").read_text()


@pytest.mark.parametrize("pair", [(1, 1), (1, 2), (5, -1), (10**9, 1)])
def test_what_is_no_pair_is_said(pair: tuple[int, int]) -> None:
    """An operation that has not run cannot run again: it was left out without a word, or an index was out of range."""

    def planner(graph: Graph) -> Plan:
        return plan_of_pairs(graph, [pair])

    with pytest.raises(ValueError, match=rf"\({pair[0]}, {pair[1]}\) is no pair: an operation runs again in front of"):
        rewrite(CHAIN, Request(planner=planner))
