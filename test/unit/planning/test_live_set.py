"""The incremental count of live bytes equals the count for a whole order, on every example and in any order."""

from __future__ import annotations

from random import Random

import pytest

from recompute.analysis.step.graph_of import graph_of
from recompute.analysis.step.order import Order, functions_of, single_block
from recompute.planning.graph import Graph
from recompute.planning.liveness import Footprint, LiveSet, live_bytes
from recompute.planning.orders import ReadyTracker, eager_order
from recompute.test.examples import CHECKPOINT, PLAIN, inlined, phases_after

ORDERS = 2


def step_by_step(graph: Graph, order: list[int]) -> list[int]:
    live = LiveSet.at_start(Footprint.of(graph))
    return [live.run(operation) for operation in order]


def random_order(graph: Graph, random: Random) -> list[int]:
    """Return a random topological order with the terminator last."""
    last = len(graph) - 1
    ready = ReadyTracker({op: graph.producers[op] for op in range(last)})
    waiting, result = ready.at_start(), list[int]()
    while waiting:
        result.append(waiting.pop(random.randrange(len(waiting))))
        waiting += [op for op in ready.complete(result[-1]) if op != last]
    return [*result, last]


@pytest.mark.slow("gpt_train.large", "gpt.large", "checkpoint")
@pytest.mark.parametrize("name", [*PLAIN, *CHECKPOINT])
def test_both_counts_agree_exactly(name: str) -> None:
    before = graph_of(Order.of(single_block(functions_of(inlined(name))[0]))).graph
    after = graph_of(phases_after(name).order, phases_after(name).phase).graph
    for index, first in enumerate((before, after)):
        orders = [list(range(len(first))), *([eager_order(first)] if index else [])]
        orders += [random_order(first, Random(seed)) for seed in range(ORDERS)]
        for order in orders:
            assert step_by_step(first, order) == live_bytes(first, order).tolist()


def test_look_ahead_leaves_live_set_unchanged() -> None:
    item = graph_of(phases_after("chain.small.mlir").order).graph
    live = LiveSet.at_start(Footprint.of(item))
    live.run(0)
    rest = range(1, len(item))
    assert live.peak_of(rest) == live.peak_of(rest) == max(live.run(operation) for operation in rest)


@pytest.mark.slow
def test_orders_differ_in_bytes() -> None:
    """The random orders differ in bytes, so that comparing them is meaningful."""
    item = graph_of(phases_after("gpt.small.mlir").order).graph
    orders = [random_order(item, Random(seed)) for seed in range(ORDERS)]
    assert len({tuple(live_bytes(item, order).tolist()) for order in (None, *orders)}) == 1 + ORDERS
