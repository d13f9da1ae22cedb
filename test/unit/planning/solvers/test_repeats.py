"""The copies chosen for one block are used for all blocks like it."""

from __future__ import annotations

import numpy as np
import pytest

from recompute.planning.solvers.block_transfer import spread_to_blocks, transfer_blocks
from recompute.planning.solvers.cut_bounds import CutBounds
from recompute.planning.solvers.effort import Effort
from recompute.planning.solvers.incumbent import Incumbent
from recompute.planning.solvers.local_search import LocalSearch
from recompute.planning.solvers.problem import OperationRow, Problem, problem_of
from recompute.planning.solvers.provenance import Provenance
from recompute.planning.solvers.repeats import NOT_REPEATED, RepeatedRun, Repeats, longest_run, repeats
from recompute.planning.solvers.result import Result
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.solvers_by_name import solve

LAYERS = 6


def layered(layers: int = LAYERS, odd: int | None = None) -> Problem:
    """Return a step with an embedding, layers of three operations, a loss, and three gradient operations per layer.

    The layer `odd` has values of another size.
    """
    rows = [OperationRow("embed", 5, (), (8,))]
    for layer in range(layers):
        x, wide = len(rows) - 1, 9 if layer == odd else 6
        rows += [
            OperationRow(f"up{layer}", 7, (x,), (wide,)),
            OperationRow(f"act{layer}", 1, (x + 1,), (wide,)),
            OperationRow(f"down{layer}", 7, (x + 2,), (8,)),
        ]
    rows.append(OperationRow("loss", 1, (len(rows) - 1,), (1,)))
    gradient = len(rows) - 1
    for layer in reversed(range(layers)):
        x, wide = 3 * layer, 9 if layer == odd else 6
        rows += [
            OperationRow(f"down{layer}'", 14, (gradient, x + 2), (wide,), is_backward=True),
            OperationRow(f"act{layer}'", 1, (len(rows), x + 1), (wide,), is_backward=True),
            OperationRow(f"up{layer}'", 14, (len(rows) + 1, x), (8,), is_backward=True),
        ]
        gradient = len(rows) - 1
    return problem_of(rows, [gradient])


@pytest.fixture
def alike() -> Repeats:
    result = repeats(layered())
    assert result is not None
    return result


def test_longest_run_finds_at_least_three_repetitions() -> None:
    assert longest_run(np.array([9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 8])) == RepeatedRun(1, 3, 10), (
        "the last one cut short"
    )
    assert longest_run(np.array([1, 1, 1, 1])) == RepeatedRun(0, 1, 4)
    assert longest_run(np.array([1, 2, 1, 2])) is None, "twice is not often enough"
    assert longest_run(np.array([1, 1, 1, 2, 3, 4, 5, 6])) is None, "less than half of it repeats"
    assert longest_run(np.array([1, 2, 3, 4, 5])) is None
    assert longest_run(np.array([], np.int64)) is None


def test_layers_are_blocks_of_both_passes(alike: Repeats) -> None:
    problem = layered()
    blocks = dict[int, set[str]]()
    for op in range(len(problem)):
        if alike.is_inside(op):
            blocks.setdefault(int(alike.block[op]), set()).add(problem.names[op])
    whole = [names for names in blocks.values() if len(names) == 6]
    assert len(whole) >= LAYERS - 1
    for names in whole:
        # Which of the three a block begins with is not said, but it is the same in both passes or one layer off.
        layers = {int(name.strip("updownact'")) for name in names}
        assert len(layers) <= 2
    assert int(alike.offset[problem.names.index("loss")]) == NOT_REPEATED


def test_shifted_finds_same_operation_in_other_block(alike: Repeats) -> None:
    problem = layered()
    for kind in ("up", "act", "down", "up{}'", "act{}'", "down{}'"):
        named = kind if "{}" in kind else kind + "{}"
        second, fourth = (problem.names.index(named.format(layer)) for layer in (1, 3))
        assert alike.counterpart(second, 2) == fourth and alike.counterpart(fourth, -2) == second
        assert alike.counterpart(second, LAYERS) is None
    assert alike.counterpart(problem.names.index("loss"), 1) is None


def test_no_repeats_without_equal_blocks() -> None:
    draw = np.random.default_rng(1)
    rows = [OperationRow(f"f{at}", int(draw.integers(1, 99)), (at - 1,) if at else (), (at + 1,)) for at in range(20)]
    rows += [OperationRow(f"b{at}", 200 + at, (at,), (at,), is_backward=True) for at in reversed(range(20))]
    assert repeats(problem_of(rows, [39])) is None
    assert repeats(layered(2)) is None
    assert repeats(problem_of([OperationRow("alone", 1, (), (1,))], [0])) is None


def test_layer_of_different_size_ends_a_run() -> None:
    result = repeats(layered(8, odd=1))
    assert result is not None and result.count <= 7


def test_copies_of_one_block_spread_to_all(alike: Repeats) -> None:
    problem = layered()
    at = {name: op for op, name in enumerate(problem.names)}
    once = {(at["act3'"], at["up3"]), (len(problem), at["embed"])}
    expected = {(at[f"act{layer}'"], at[f"up{layer}"]) for layer in range(LAYERS)} | {(len(problem), at["embed"])}
    result = spread_to_blocks(alike, once, int(alike.block[at["act3'"]]))
    assert result == expected, sorted(result ^ expected)


def test_copies_spread_to_every_second_block(alike: Repeats) -> None:
    problem = layered()
    at = {name: op for op, name in enumerate(problem.names)}
    block = int(alike.block[at["act2'"]])
    result = spread_to_blocks(alike, {(at["act2'"], at["up2"])}, block, 2)
    assert {problem.names[op] for _, op in result} == {"up0", "up2", "up4"}


def test_every_spread_is_a_valid_order(alike: Repeats) -> None:
    problem = layered()
    plan = LocalSearch(problem).repair(evaluate(problem, sequence_of(problem, ())).peak_bytes // 2)
    assert plan
    for width in (1, 2, 3):
        for first in range(alike.count):
            pairs = spread_to_blocks(alike, plan, first, width)
            assert all(0 <= op < stage <= len(problem) for stage, op in pairs)
            evaluate(problem, sequence_of(problem, pairs))


@pytest.mark.slow("0.15", "0.25")
@pytest.mark.parametrize("share", [0.15, 0.2, 0.25, 0.3])
def test_block_transfer_is_cheaper_than_greedy_alone(share: float) -> None:
    """On a deep step of equal layers, the plan is cheaper than that of the greedy search, without annealing and within
    the budget."""
    problem, messages = layered(12), list[str]()
    budget = int(share * evaluate(problem, sequence_of(problem, ())).peak_bytes)
    search, best = LocalSearch(problem), Incumbent(problem, budget, progress=messages.append)
    assert best.offer(search.repair(budget), Provenance("greedy")) and best.evaluation is not None
    greedy = best.evaluation.extra_cost
    transfer_blocks(best, search, CutBounds(problem, budget))
    assert any(line.startswith("copies of one block in all") for line in messages)
    assert str(best.provenance) == "greedy + alike in all blocks"
    assert best.evaluation.extra_cost < greedy and best.evaluation.peak_bytes <= budget


def test_auto_includes_block_transfer() -> None:
    problem, messages = layered(12), list[str]()
    budget = int(0.2 * evaluate(problem, sequence_of(problem, ())).peak_bytes)
    plan = solve(problem, budget, best=Incumbent(problem, budget, progress=messages.append), effort=Effort.brief())
    assert isinstance(plan, Result) and plan.peak_bytes <= budget
    assert any(line.startswith("copies of one block") for line in messages)
