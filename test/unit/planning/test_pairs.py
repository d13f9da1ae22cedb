"""Pairs from an external planner: those that are no copy of this step are refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

import recompute

CHAIN = (Path(__file__).resolve().parents[3] / "examples" / "stablehlo" / "chain.small.mlir").read_text()


@pytest.mark.parametrize("pair", [(10**6, 5), (20, -1), (1, 5), (5, 5)])
def test_invalid_pairs_are_rejected(pair: tuple[int, int]) -> None:
    def planner(graph: recompute.Graph) -> recompute.Plan:
        return recompute.plan_of_pairs(graph, [pair])

    place, op = pair
    with pytest.raises(ValueError, match=rf"invalid pair \({place}, {op}\): expected \(place, operation\) with"):
        recompute.rewrite(CHAIN, recompute.RecomputeOptions(planner=planner))
