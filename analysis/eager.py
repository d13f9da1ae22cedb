"""The schedule of an executor that starts operations as soon as they can run, and the peak that it has.

Program order says nothing about such an executor: a copy that nothing holds back runs in the forward pass, however late
it is written. Here forward operations run in program order, each as soon as the one before it is done. Copies and
gradient operations run in the order in which they become ready, first in, first out, and ahead of forward operations:
an operation is ready when its operands, tokens among them, are there, and those that become ready together go by
program order. The update runs last, in program order: recomputation leaves it alone. An update that a later forward or
gradient operation reads, as between two steps in one function, runs in its place among the forward operations.

Only programs whose copies really wait for gradients keep their saving under this schedule. With the tokens taken out
the copies run beside the forward pass and the peak is that of the plain step again, so the measure can fail.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from .liveness import Timeline, timeline
from .order import Order, producers
from .phases import Phases


def eager(phases: Phases) -> Phases:
    """The same function in the order of the eager schedule."""
    queue = _ReadyQueue(phases)
    operations = phases.order.operations
    last = _last_updates(phases)
    queue.run_ready(op for op in operations if phases.is_gradient(op))
    for op in operations:
        if not phases.is_gradient(op) and op not in last:
            queue.run(op)
    update = [op for op in operations if op in last]
    return Phases(Order.from_operations(phases.order.block, [*queue.done, *update]), phases.phase)


def _last_updates(phases: Phases) -> set[Operation]:
    """Updates that no forward or gradient operation needs."""
    found = set[Operation]()
    needed = set[Operation]()
    for op in reversed(phases.order.operations):
        if phases.is_update(op) and op not in needed:
            found.add(op)
        else:
            needed.update(producers(op))
    return found


def eager_timeline(function: FuncOp, phases: Phases) -> Timeline:
    """Live bytes over the eager schedule; its `peak_bytes` is what rule R8 speaks of."""
    return timeline(function, eager(phases))


@dataclass
class _ReadyQueue:
    """Runs gradient operations as soon as everything that they read is done."""

    phases: Phases
    done: list[Operation] = field(default_factory=list[Operation])
    missing: dict[Operation, int] = field(init=False)
    readers: dict[Operation, list[Operation]] = field(init=False)

    def __post_init__(self) -> None:
        self.missing, self.readers = {}, {}
        position = self.phases.order.position
        for op in filter(self.phases.is_gradient, self.phases.order.operations):
            needed = {producer for producer in producers(op) if producer in position}
            self.missing[op] = len(needed)
            for producer in needed:
                self.readers.setdefault(producer, []).append(op)

    def run_ready(self, operations: Iterable[Operation]) -> None:
        queue = deque(op for op in operations if not self.missing[op])
        while queue:
            op = queue.popleft()
            self.done.append(op)
            queue.extend(self._now_ready(op))

    def run(self, op: Operation) -> None:
        """Run an operation that goes by program order, and then what waited for it."""
        self.done.append(op)
        self.run_ready(self._now_ready(op))

    def _now_ready(self, op: Operation) -> list[Operation]:
        """Readers for which `op` was the last missing operand, in program order."""
        for reader in self.readers.get(op, ()):
            self.missing[reader] -= 1
        return [reader for reader in self.readers.get(op, ()) if not self.missing[reader]]
