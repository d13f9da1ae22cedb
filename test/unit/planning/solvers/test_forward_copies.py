"""Copies in the forward pass, where a graph allows them: plans found, and budgets proved impossible."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from recompute.planning.solvers.first_need import copies_at_first_need
from recompute.planning.solvers.graph_file import read_graph
from recompute.planning.solvers.lowest_peak import lowest_peak_plan
from recompute.planning.solvers.problem import Problem
from recompute.planning.solvers.result import Infeasible, Result
from recompute.planning.solvers.solvers_by_name import solve
from recompute.planning.solvers.working_set import largest_working_set


def operation(number: int, deps: list[int], size: int, **others: Any) -> dict[str, Any]:
    return {"id": number, "kind": "op", "deps": deps, "bytes": size, "alias": -1, "cost": 10, **others}


def part(number: int, of: int, size: int) -> dict[str, Any]:
    return operation(number, [of], 0, alias=of, split=True, obytes=size)


@pytest.fixture
def problem() -> Problem:
    """Return a problem in which repeating operation 1 in front of operation 5 lowers the peak from 512 to 384 bytes.

    Operation 1 makes 128 and 64 bytes; 4 reads the small result and makes 320 bytes; 5 reads the large one. If
    operation 1 is repeated, its large result need not be alive while 4 runs.
    """
    nodes = [
        operation(1, [], 0),
        part(2, 1, 128),
        part(3, 1, 64),
        operation(4, [3], 320),
        operation(5, [2], 64),
        operation(6, [5], 64, bwd=True),
        {"id": 7, "kind": "output", "deps": [6]},
    ]
    return read_graph(json.dumps({"nodes": nodes}))


def test_proven_minimum_holds_for_forward_copies(problem: Problem) -> None:
    assert (problem.earliest_stage, problem.allows_forward_copies) == (3, True)
    assert largest_working_set(problem).bytes == 384
    refused = solve(problem, 383)
    assert isinstance(refused, Infeasible) and refused.proved and refused.minimum_bytes == 384


def test_forward_copies_are_tried_if_no_plan_is_found(problem: Problem) -> None:
    plan = solve(problem, 400)
    assert isinstance(plan, Result) and plan.finished
    assert (plan.pairs, plan.peak_bytes, plan.extra_cost) == (frozenset({(2, 0)}), 384, 10)
    assert lowest_peak_plan(problem).peak_bytes == 384


@pytest.fixture
def either() -> Problem:
    """Return a problem in which one of two values of 100 bytes must be dropped while operation 4 makes its 300 bytes.

    That of 1 costs 1 and is read again in the forward pass; that of 2 costs 50 and is read in the backward pass.
    """
    nodes = [
        operation(1, [], 100) | {"cost": 1},
        operation(2, [], 100) | {"cost": 50},
        operation(3, [1, 2], 10),
        operation(4, [3], 300),
        operation(5, [4], 10),
        operation(6, [1, 5], 10),
        operation(7, [2, 6], 10, bwd=True),
        {"id": 8, "kind": "output", "deps": [7]},
    ]
    return read_graph(json.dumps({"nodes": nodes}))


def test_forward_copies_are_tried_if_a_gap_remains(either: Problem) -> None:
    plan = solve(either, 420)
    assert isinstance(plan, Result)
    assert (plan.pairs, plan.extra_cost) == (frozenset({(5, 0)}), 1)
    in_the_gradient = solve(replace(either, allows_forward_copies=False), 420)
    assert isinstance(in_the_gradient, Result) and in_the_gradient.extra_cost == 50


def test_copies_of_a_cut_are_placed_at_first_need(either: Problem) -> None:
    """Copies are placed at their first need in a segment; values for the next segment are copied at the end of this
    one."""
    first, second = (either.results_of(op)[0] for op in (0, 1))
    assert copies_at_first_need(either, 3, [], [0, 1], 5, [first, second]) == {(5, 0), (5, 1)}
    assert copies_at_first_need(either, 3, [second], [0], 6, [first]) == {(5, 0)}
    assert copies_at_first_need(either, 3, [second], [0], 4, [first]) == {(4, 0)}
    assert copies_at_first_need(either, 3, [second], [0], 4) == frozenset()
