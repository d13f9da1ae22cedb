"""Copies of views need storage of their own: subsets of views are tried, and a bound without view copies is not
used."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recompute.planning.solvers.graph_file import read_graph
from recompute.planning.solvers.problem import Problem
from recompute.planning.solvers.result import Infeasible, Result
from recompute.planning.solvers.solvers_by_name import WITH_VIEWS, solve


def operation(number: int, deps: list[int], size: int, **others: Any) -> dict[str, Any]:
    return {"id": number, "kind": "op", "deps": deps, "bytes": size, "alias": -1, "cost": 8000, **others}


@pytest.fixture
def problem() -> Problem:
    """Return a problem with two views, where copying one of them lowers the peak but copying both raises it.

    Operation 5 makes 1024 bytes, of which a half, 7, is read later; so does 9, with the half 10. Both are alive where
    11 runs: 2240 bytes. Copying 7 alone lowers this to 1728 bytes; copying both needs more while the copies are made.
    """
    nodes = [
        operation(3, [], 128, shape=[32]),
        operation(5, [3], 1024, shape=[256]),
        operation(7, [5], 0, alias=5, shape=[128]),
        operation(9, [7, 3], 1024, shape=[256]),
        operation(10, [9], 0, alias=9, shape=[128]),
        operation(11, [7, 10], 192, shape=[48]),
        operation(13, [9, 11], 256, shape=[64]),
        {"id": 14, "kind": "output", "deps": [13]},
    ]
    return read_graph(json.dumps({"nodes": nodes}))


def test_only_profitable_views_are_copied(problem: Problem) -> None:
    plan = solve(problem, 1792, WITH_VIEWS)
    assert isinstance(plan, Result) and plan.peak_bytes == 1728
    assert [name for name in plan.problem.labels if name.startswith("copy:")] == ["copy:7"]


def test_bound_without_view_copies_is_not_used_with_them(problem: Problem) -> None:
    without = solve(problem, 1700)
    assert isinstance(without, Infeasible) and without.proved and without.minimum_bytes == 2240
    plan = solve(problem, 1700, WITH_VIEWS)
    assert isinstance(plan, Infeasible) and not plan.proved and plan.minimum_bytes <= 1664
    assert "2240" not in plan.reason and "it is not proved that none exists" in plan.reason
