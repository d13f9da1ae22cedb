"""A plan: which operations of a graph run again, where, behind which gates, and which values readers replace.

A plan is made for one graph, by a planner or by hand, and refers to its numbers. `to_json` and `from_json` of
`plan_file.py` store it for another run; `analysis/verify/emitted.py` checks a program against it. Any copy groups that
read only values computed before them form a program; `liveness.py` computes its peak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import Graph


@dataclass(frozen=True)
class Batch:
    """Copies behind one token.

    `inputs`: the values from outside of the group that these copies read and no earlier batch reads. The token waits
    for the gates of the group, and for the copies of the `awaited` values of the preceding batch.
    """

    operations: tuple[int, ...]
    inputs: tuple[int, ...]
    awaited: tuple[int, ...] = ()


@dataclass(frozen=True)
class CopyGroup:
    """Copies that are made together, before the operation `before`, batch by batch, behind the same `gates`.

    From `before` on, uses of a replaced value (`replaces`) in the backward pass are redirected to its most recent copy.
    `numbers`: the copy number of each copy among those of its original, from 1 on. Bytes and FLOPs are estimates of the
    planner: `freed_bytes` need not be saved for the backward pass any more, `pinned_bytes` are kept live for the copies
    instead.
    """

    segment: str
    before: int
    batches: tuple[Batch, ...]
    numbers: tuple[int, ...]
    replaces: tuple[int, ...]
    gates: tuple[int, ...]
    freed_bytes: int = 0
    pinned_bytes: int = 0
    extra_flops: int = 0

    @cached_property
    def operations(self) -> tuple[int, ...]:
        """The copied operations, in the order of the copies."""
        return tuple(op for batch in self.batches for op in batch.operations)

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The values from outside that the copies read."""
        return tuple(value for batch in self.batches for value in batch.inputs)

    @property
    def saved_bytes(self) -> int:
        return self.freed_bytes - self.pinned_bytes


@dataclass(frozen=True)
class Kept:
    """A segment, or a single operation of one, that is not recomputed, with the reason."""

    segment: str
    operation: int
    reason: str


@dataclass(frozen=True)
class Plan:
    """Copy groups in program order, and targets that are kept: one entry per segment, with the first reason."""

    groups: tuple[CopyGroup, ...] = ()
    kept: tuple[Kept, ...] = ()

    @property
    def replaced(self) -> frozenset[int]:
        return frozenset(value for group in self.groups for value in group.replaces)

    @property
    def copies(self) -> int:
        return sum(len(group.operations) for group in self.groups)

    @property
    def extra_flops(self) -> int:
        return sum(group.extra_flops for group in self.groups)

    def extra_cost(self, cost: Sequence[int]) -> int:
        """Return the total cost of the copies, by the `cost` of each operation."""
        return sum(cost[op] for group in self.groups for op in group.operations)


def nothing_planned(_: Graph) -> Plan:
    """Return a planner that recomputes nothing."""
    return Plan()
