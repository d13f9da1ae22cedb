"""The orders in which executors run a graph: as it is written, or what is ready first.

Program order says nothing about an executor that starts what it can: a copy that nothing holds back runs in the forward
pass, however late it is written. All such orders keep the same account of what is ready (`Ready`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from .graph import Graph

Node = TypeVar("Node", bound=Hashable)


class Ready(Generic[Node]):
    """Which nodes have all that they need, as others are done. `needs`: for each node those that come before it.

    What becomes ready together is given in the order of `needs`.
    """

    def __init__(self, needs: Mapping[Node, Iterable[Node]]):
        self.missing = dict[Node, int]()
        self._waiting: dict[Node, list[Node]] = {}
        for node, needed in needs.items():
            each = set(needed)
            self.missing[node] = len(each)
            for one in each:
                self._waiting.setdefault(one, []).append(node)

    def at_start(self) -> list[Node]:
        return [node for node, missing in self.missing.items() if not missing]

    def done(self, node: Node) -> list[Node]:
        """What this was the last missing one for."""
        waiting = self._waiting.get(node, ())
        for one in waiting:
            self.missing[one] -= 1
        return [one for one in waiting if not self.missing[one]]


def eager(graph: Graph) -> list[int]:
    """The order of an executor that starts operations as soon as they can run.

    Forward operations run in program order, each as soon as the one before it is done. Copies and gradient operations
    run in the order in which they become ready, first in, first out, and ahead of forward operations: an operation is
    ready when its operands, tokens among them, are there, and those that become ready together go by program order. The
    update runs last, in program order: recomputation leaves it alone. An update that a later forward or gradient
    operation reads, as between two steps in one function, runs in its place among the forward operations.

    Only programs whose copies really wait for gradients keep their saving in this order. With the tokens taken out the
    copies run beside the forward pass and the peak is that of the plain step again, so the measure can fail.
    """
    last = _last_updates(graph)
    ready = Ready({op: graph.producers[op] for op in range(len(graph)) if graph.gradient[op]})
    found = list[int]()

    def run(queue: deque[int]) -> None:
        while queue:
            op = queue.popleft()
            found.append(op)
            queue.extend(ready.done(op))

    run(deque(ready.at_start()))
    for op in range(len(graph)):
        if not graph.gradient[op] and op not in last:
            found.append(op)
            run(deque(ready.done(op)))
    return [*found, *sorted(last)]


def _last_updates(graph: Graph) -> set[int]:
    """Updates that no forward or gradient operation needs."""
    found, needed = set[int](), set[int]()
    for op in reversed(range(len(graph))):
        if graph.update[op] and op not in needed:
            found.add(op)
        else:
            needed.update(graph.producers[op])
    return found
