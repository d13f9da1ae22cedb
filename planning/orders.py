"""The order of an eager executor, which starts operations as soon as they are ready.

Such an executor ignores program order: a copy runs in the forward pass, wherever it is placed, unless it waits for a
gradient value, its *gate*. Copies depend on a token, which exists once their gates exist.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from .graph import Graph

Node = TypeVar("Node", bound=Hashable)


class ReadyTracker(Generic[Node]):
    """A tracker of the nodes that become ready as other nodes complete.

    The argument `needs` maps each node to its predecessors. Nodes that become ready together are returned in the order
    of `needs`.
    """

    def __init__(self, needs: Mapping[Node, Iterable[Node]]):
        self.missing = dict[Node, int]()
        self._waiting: dict[Node, list[Node]] = {}
        for node, needed in needs.items():
            predecessors = set(needed)
            self.missing[node] = len(predecessors)
            for predecessor in predecessors:
                self._waiting.setdefault(predecessor, []).append(node)

    def at_start(self) -> list[Node]:
        """Return the nodes without predecessors."""
        return [node for node, missing in self.missing.items() if not missing]

    def complete(self, node: Node) -> list[Node]:
        """Mark a node as completed. Returns the nodes that become ready."""
        successors = self._waiting.get(node, ())
        for successor in successors:
            self.missing[successor] -= 1
        return [successor for successor in successors if not self.missing[successor]]


def eager_order(graph: Graph) -> list[int]:
    """Return the operations in the order of an executor that starts operations as soon as they are ready.

    An operation is ready when its operands, including tokens, are available. Forward operations run in program order.
    Copies and gradient operations run before the next forward operation, first in, first out; operations that become
    ready together run in program order. The update runs last, in program order, because recomputation does not change
    it. An update that a later forward or gradient operation reads, as between two steps in one function, runs in its
    place among the forward operations.

    In this order, recomputation reduces memory only if the copies wait for gradients. Without tokens, the copies run
    during the forward pass and the peak equals the peak of the plain step. Therefore this order reveals missing gates.
    """
    last = _last_updates(graph)
    ready = ReadyTracker({op: graph.producers[op] for op in range(len(graph)) if graph.gradient[op]})
    order = list[int]()

    def run(queue: deque[int]) -> None:
        while queue:
            op = queue.popleft()
            order.append(op)
            queue.extend(ready.complete(op))

    run(deque(ready.at_start()))
    for op in range(len(graph)):
        if not graph.gradient[op] and op not in last:
            order.append(op)
            run(deque(ready.complete(op)))
    return [*order, *sorted(last)]


def _last_updates(graph: Graph) -> set[int]:
    """Return the updates that no forward or gradient operation depends on."""
    updates, needed = set[int](), set[int]()
    for op in reversed(range(len(graph))):
        if graph.update[op] and op not in needed:
            updates.add(op)
        else:
            needed.update(graph.producers[op])
    return updates
