"""The incremental count of live bytes: exactly that of a whole order, on every example and in any order."""

from __future__ import annotations

from random import Random

import pytest

from recompute.analysis.step.graph_of import graph_of
from recompute.analysis.step.order import Order, functions_of, single_block
from recompute.planning.graph import Graph
from recompute.planning.liveness import Footprint, LiveSet, live_bytes
from recompute.planning.orders import Ready, eager
from recompute.test.examples import CHECKPOINT, PLAIN, inlined, phases_after

ORDERS = 2


def step_by_step(one: Graph, order: list[int]) -> list[int]:
    live = LiveSet.at_start(Footprint.of(one))
    return [live.run(operation) for operation in order]


def random_order(one: Graph, random: Random) -> list[int]:
    """Return a random topological order with the terminator last."""
    last = len(one) - 1
    ready = Ready({op: one.producers[op] for op in range(last)})
    waiting, found = ready.at_start(), list[int]()
    while waiting:
        found.append(waiting.pop(random.randrange(len(waiting))))
        waiting += [op for op in ready.complete(found[-1]) if op != last]
    return [*found, last]


@pytest.mark.slow("gpt_train.large", "gpt.large", "checkpoint")
@pytest.mark.parametrize("name", [*PLAIN, *CHECKPOINT])
def test_both_counts_agree_exactly(name: str) -> None:
    before = graph_of(Order.of(single_block(functions_of(inlined(name))[0]))).graph
    after = graph_of(phases_after(name).order, phases_after(name).phase).graph
    for index, one in enumerate((before, after)):
        orders = [list(range(len(one))), *([eager(one)] if index else [])]
        orders += [random_order(one, Random(seed)) for seed in range(ORDERS)]
        for order in orders:
            assert step_by_step(one, order) == live_bytes(one, order).tolist()


def test_a_look_ahead_changes_nothing() -> None:
    one = graph_of(phases_after("chain.small.mlir").order).graph
    live = LiveSet.at_start(Footprint.of(one))
    live.run(0)
    rest = range(1, len(one))
    assert live.peak_of(rest) == live.peak_of(rest) == max(live.run(operation) for operation in rest)


@pytest.mark.slow
def test_orders_differ_in_bytes() -> None:
    """Check that the random orders differ in bytes, so that comparing them means something."""
    one = graph_of(phases_after("gpt.small.mlir").order).graph
    orders = [random_order(one, Random(seed)) for seed in range(ORDERS)]
    assert len({tuple(live_bytes(one, order).tolist()) for order in (None, *orders)}) == 1 + ORDERS
