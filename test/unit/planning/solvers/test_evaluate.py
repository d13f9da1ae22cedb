"""The evaluator of schedules: peak and cost of copies, against a count step by step, and refusal of invalid orders."""

from __future__ import annotations

import random

import numpy as np
import pytest

from recompute.planning.solvers.local_search import LocalSearch
from recompute.planning.solvers.problem import OperationRow, Pair, Problem, problem_of
from recompute.planning.solvers.sequence import evaluate, order_text, read_order, sequence_of
from recompute.test.unit.planning.solvers.by_hand import peak_of
from recompute.test.unit.planning.solvers.exhaustive import random_problem


def some_pairs(problem: Problem, draw: random.Random) -> frozenset[Pair]:
    n = len(problem)
    can = [(t, i) for t in range(problem.earliest_stage, n + 1) for i in range(min(t, n)) if problem.may_run_again[i]]
    return frozenset(draw.sample(can, min(len(can), draw.randint(0, 12))))


@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_peak_and_cost_agree_with_a_count_by_hand(seed: int) -> None:
    for index in range(seed, seed + 100):
        problem, draw = random_problem(index), random.Random(index)
        search = LocalSearch(problem)
        for _ in range(2):
            pairs = some_pairs(problem, draw)
            sequence = sequence_of(problem, pairs)
            results = evaluate(problem, sequence)
            assert results.peak_bytes == peak_of(problem, sequence.tolist()) == search.peak_bytes(pairs)
            assert results.extra_cost == problem.cost_of(pairs) == search.cost
            assert results.bytes_at[results.position] == results.peak_bytes


CHAIN = problem_of(
    [
        OperationRow("a", 3, [], [8], label="10"),
        OperationRow("b", 5, [0], [4, 2], label="11"),
        OperationRow("c", 7, [1, 0], [1], may_run_again=False, label="15"),
        OperationRow("d", 1, [2, 3], [1], is_backward=True, label="16"),
    ],
    outputs=[4],
)


def test_peak_and_cost_of_a_copy_are_as_counted() -> None:
    sequence = sequence_of(CHAIN, [(3, 0), (3, 1)])
    assert sequence.tolist() == [0, 1, 2, 0, 1, 3]
    results = evaluate(CHAIN, sequence)
    # b reads 8, makes 4 + 2, unused results die after it; c holds 1.
    assert results.bytes_at.tolist() == [8, 14, 13, 9, 15, 4]
    assert (results.peak_bytes, results.position, results.cost, results.extra_cost) == (15, 4, 24, 8)


def test_order_text_round_trips() -> None:
    sequence = sequence_of(CHAIN, [(3, 0)])
    text = order_text(CHAIN, sequence)
    assert text == "10\n11\n15\n10\n16\n"
    assert read_order(CHAIN, "# by hand\n" + text.replace("15", "15  # c") + "\n").tolist() == sequence.tolist()
    with pytest.raises(ValueError, match="order:2:1: error: '12' is not the label of an operation of the graph"):
        read_order(CHAIN, "10\n12\n")


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([(1, 1)], "a copy precedes the operation that it copies"),
        ([(5, 0)], "a copy precedes the operation that it copies"),
        ([(3, 2)], "an operation that must not run twice is copied"),
        ([(3, 0), (3, 0)], r"operation 0 \(.*\) is copied twice in stage 3"),
    ],
)
def test_invalid_copies_are_rejected(pairs: list[Pair], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        sequence_of(CHAIN, pairs)


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ([0, 1, 2], r"the order omits operation 3 \(d\)"),
        ([1, 0, 2, 3], r"operation 1 \(b\) uses a before its definition"),
        ([0, 1, 2, 4], "the order contains operation 4, but the graph has only 4 operations"),
    ],
)
def test_invalid_orders_are_rejected(order: list[int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        evaluate(CHAIN, np.array(order, np.int64))


def test_read_before_definition_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"operation 0 \(a\) reads a value that no earlier operation makes"):
        problem_of([OperationRow("a", 1, [0], [1])], [0])
