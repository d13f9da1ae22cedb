"""Checkmate's integer program beside ours: the cheapest plan on small problems, against exhaustive search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from recompute.planning.solvers.integer_program import is_installed
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.test.benchmark_scripts import script
from recompute.test.unit.planning.solvers.exhaustive import optimum
from recompute.test.unit.planning.solvers.test_optimal import given_problems

needs_highs = pytest.mark.skipif(not is_installed(), reason="highspy is not installed: no integer programs")


@pytest.mark.slow
@needs_highs
def test_checkmate_is_optimal_on_small_problems() -> None:
    """Compare Checkmate's optimum with exhaustive search, whose cost is never higher.

    Checkmate runs the copies of a stage in program order, and may count an operation with several results twice.
    """
    checkmate: Any = script("solvers.checkmate_program").checkmate
    equal = actual = 0
    for _, problem, budget in given_problems(0, 120):
        problem = replace(problem, earliest_stage=0)
        best, theirs = optimum(problem, budget), checkmate(problem, budget, 20.0)
        if theirs.pairs is None:
            continue
        assert best is not None
        result = evaluate(problem, sequence_of(problem, theirs.pairs))
        assert result.peak_bytes <= budget and result.extra_cost >= best
        assert problem.percent(result.extra_cost) - theirs.bound_percent < 1e-4
        actual += 1
        equal += result.extra_cost == best
    assert actual >= 40 and equal >= 0.9 * actual


def test_layered_graphs_are_deterministic() -> None:
    layered: Any = script("solvers.planner_graphs").layered
    first, other = layered(50), layered(50)
    assert first.operands.tolist() == other.operands.tolist()
    assert first.storage_bytes.tolist() == other.storage_bytes.tolist()
    assert len(first) == 50 and first.earliest_stage == 0 and first.is_output.sum() < 25
    assert evaluate(first, sequence_of(first, ())).peak_bytes > 2 * int(first.working_bytes.min())
