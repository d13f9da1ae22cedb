"""Where a graph allows it, copies run in the forward pass too: what is proved impossible, and what is found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recompute.planning.solvers.graph_file import read_graph
from recompute.planning.solvers.problem import Problem
from recompute.planning.solvers.registry import solve
from recompute.planning.solvers.result import Refusal, Result
from recompute.planning.solvers.sweep import least_budget
from recompute.planning.solvers.working_set import largest_working_set


def operation(number: int, deps: list[int], size: int, **others: Any) -> dict[str, Any]:
    return {"id": number, "kind": "op", "deps": deps, "bytes": size, "alias": -1, "cost": 10, **others}


def part(number: int, of: int, size: int) -> dict[str, Any]:
    return operation(number, [of], 0, alias=of, split=True, obytes=size)


@pytest.fixture
def problem() -> Problem:
    """Operation 1 makes 128 and 64 bytes; 4 reads the small ones and makes 320 of its own; 5 reads the large ones. Once
    again in front of 5, operation 1 need not hold the large ones while 4 runs: 384 bytes instead of 512."""
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


def test_the_proven_minimum_holds_for_them(problem: Problem) -> None:
    assert (problem.earliest, problem.everywhere) == (3, True)
    assert largest_working_set(problem).bytes == 384
    refused = solve(problem, 383)
    assert isinstance(refused, Refusal) and refused.proved and refused.minimum_bytes == 384


def test_they_are_searched_for_where_nothing_else_is_found(problem: Problem) -> None:
    found = solve(problem, 400)
    assert isinstance(found, Result) and found.finished
    assert (found.pairs, found.peak_bytes, found.extra_cost) == (frozenset({(2, 0)}), 384, 10)
    assert least_budget(problem) == 384
