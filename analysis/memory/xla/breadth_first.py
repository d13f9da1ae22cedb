"""The order in which XLA:CPU runs a program: breadth first, as it is scheduled to keep several threads busy.

Operations run in the order in which they become ready, first in, first out (`xla/service/hlo_memory_scheduler.cc`,
`BFScheduler`). So what depends on the arguments alone runs first: random bits of every layer before the first layer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence, Set

from ....planning.orders import Ready

# XLA packs their operands in a tuple and unpacks it: two more steps.
_TUPLE_STEPS = 2
_TUPLED = frozenset({"stablehlo.optimization_barrier", "recompute.depend", "stablehlo.while"})


def breadth_first(needs: Mapping[int, Set[int]], names: Sequence[str]) -> Sequence[int]:
    """The keys of `needs`, each after all that it needs; those that are ready from the start in their given order."""
    ready = Ready(needs)
    queue = deque((op, _steps(names[op])) for op in ready.at_start())
    done = list[int]()
    while queue:
        op, steps = queue.popleft()
        if steps:
            queue.append((op, steps - 1))
        else:
            done.append(op)
            queue.extend((reader, _steps(names[reader])) for reader in ready.done(op))
    return done


def _steps(name: str) -> int:
    return _TUPLE_STEPS if name in _TUPLED else 0
