"""The schedule of XLA:CPU: breadth first, which keeps several threads busy.

Operations run in the order in which they become ready, first in, first out (`xla/service/hlo_memory_scheduler.cc`,
`BFScheduler`). So operations that depend only on arguments run first: random bits of all layers before the first layer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence, Set

from ....planning.orders import Ready

# XLA packs their operands into a tuple and unpacks it: two additional steps.
_TUPLE_STEPS = 2
_TUPLED = frozenset({"stablehlo.optimization_barrier", "recompute.depend", "stablehlo.while"})


def breadth_first(needs: Mapping[int, Set[int]], names: Sequence[str]) -> Sequence[int]:
    """The keys of `needs` in topological order; those that are ready from the start keep their given order."""
    ready = Ready(needs)
    queue = deque((op, _steps(names[op])) for op in ready.at_start())
    schedule = list[int]()
    while queue:
        op, steps = queue.popleft()
        if steps:
            queue.append((op, steps - 1))
        else:
            schedule.append(op)
            queue.extend((reader, _steps(names[reader])) for reader in ready.done(op))
    return schedule


def _steps(name: str) -> int:
    return _TUPLE_STEPS if name in _TUPLED else 0
