"""A plan: which operations of a graph run again, where, behind what, and who reads the copies. Data that travels.

A plan is made for one graph, by a planner or by hand, and speaks of it in numbers. `to_json` and `from_json` bring it
to the next run; `analysis/verify/emitted.py` checks a program against it. Any set of copy groups of which each reads
only what was computed before it is a program; what it costs, `evaluate.py` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Batch:
    """Copies behind one token.

    `inputs` are the values from outside the group that these copies read and no earlier batch does; the token waits for
    the group's gates, and for the copies of the `awaited` values of the batch before.
    """

    operations: tuple[int, ...]
    inputs: tuple[int, ...]
    awaited: tuple[int, ...] = ()


@dataclass(frozen=True)
class CopyGroup:
    """Copies that are made together, in front of the operation `before`, batch by batch, behind the same `gates`.

    Whoever of the backward pass reads one of the values that the group `replaces`, from there on, reads its copy: of
    several copies the latest. `numbers` says which copy of its original each copy is, from 1 on. Bytes and FLOPs are
    what the planner reckoned: `freed_bytes` need not be saved for the backward pass any more, `pinned_bytes` are kept
    alive for the copies instead.
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
        """What is copied, in the order of the copies."""
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
    """A segment, or a single operation of one, that is not recomputed, and why."""

    segment: str
    operation: int
    reason: str


@dataclass(frozen=True)
class Plan:
    """Copy groups in the order in which they are put into the program, and where a wish has no effect: each segment
    once, at the first place that says why."""

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
        """Of the copies, by the `cost` of each operation."""
        return sum(cost[op] for group in self.groups for op in group.operations)
