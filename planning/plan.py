"""Recomputation plans. A plan lists the recomputed operations of a graph, the places and gates of their copies, and the
values that the copies replace.

Copies are inserted in groups. A group waits for its *gates*, which are gradient values: its copies depend on a *token*,
a value that exists once the gates exist. A plan is made for one graph, by a planner or by hand, and refers to
operations and values by their indices in this graph. `to_json` and `from_json` of `plan_file.py` store it for another
run; `analysis/verify/emitted.py` checks a program against it. Any copy groups that read only values computed before
them give a valid program. `liveness.py` computes the peak of this program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import Graph


@dataclass(frozen=True)
class Batch:
    """Copies gated by one token. The token waits for the group's gates and for the preceding batch.

    Attributes:
        operations: The copied operations, in the order of the copies.
        inputs: The values from outside the group that these copies read and no earlier batch reads.
        awaited: Values of the preceding batch. The token waits for their copies.
    """

    operations: tuple[int, ...]
    inputs: tuple[int, ...]
    awaited: tuple[int, ...] = ()


@dataclass(frozen=True)
class CopyGroup:
    """Copies that are inserted at one place, batch by batch, with the same gates.

    Attributes:
        segment: The segment that is recomputed; "" for operations outside segments.
        before: The operation before which the copies are inserted.
        batches: The copies.
        numbers: For each copy, its number among all copies of its operation in the plan, starting at 1.
        replaces: The values whose uses in the backward pass, from `before` on, are redirected to their latest copies.
        gates: The gradient values that all copies wait for.
        freed_bytes: An estimate of the bytes that no longer have to be saved for the backward pass.
        pinned_bytes: An estimate of the bytes that stay live only because the copies read them.
        extra_flops: The FLOPs of the copies.
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
        """The values from outside the group that the copies read."""
        return tuple(value for batch in self.batches for value in batch.inputs)

    @property
    def saved_bytes(self) -> int:
        """An estimate of the net reduction of memory: the freed bytes minus the pinned bytes."""
        return self.freed_bytes - self.pinned_bytes


@dataclass(frozen=True)
class NotRecomputed:
    """A segment, or an operation in it, that is not recomputed, with the reason.

    Attributes:
        segment: The name of the segment; "" outside segments.
        operation: The operation to which the reason refers.
        reason: The reason: a `SkipReason`, or other text.
    """

    segment: str
    operation: int
    reason: str


@dataclass(frozen=True)
class Optimality:
    """The proven distance between the cost of a plan and the lowest cost within its budget.

    Attributes:
        percent: The extra cost of the plan, in percent of the cost of the plain step.
        bound_percent: A lower bound on the extra cost of every plan within the budget, in the same unit.
        by: The method that proves the bound `bound_percent`.
    """

    percent: float
    bound_percent: float
    by: str

    @property
    def gap(self) -> float:
        """An upper bound on the distance to the lowest cost, in percentage points."""
        return max(0.0, self.percent - self.bound_percent)


@dataclass(frozen=True)
class Plan:
    """A plan for one graph.

    Attributes:
        groups: The copy groups, in program order.
        kept: For each segment that is not recomputed, an entry with the first reason found.
        optimality: The distance to the cheapest plan; None unless a solver made the plan. Plan files do not contain it.
    """

    groups: tuple[CopyGroup, ...] = ()
    kept: tuple[NotRecomputed, ...] = ()
    optimality: Optimality | None = field(default=None, compare=False)

    @cached_property
    def _hash(self) -> int:
        # A hash of integers is fast to compute, and equal in every process that reads a stored plan.
        return hash(tuple((group.before, group.operations) for group in self.groups))

    def __hash__(self) -> int:
        return self._hash

    @property
    def replaced(self) -> frozenset[int]:
        """The values that copies replace."""
        return frozenset(value for group in self.groups for value in group.replaces)

    @property
    def copies(self) -> int:
        """The number of copies."""
        return sum(len(group.operations) for group in self.groups)

    @property
    def extra_flops(self) -> int:
        """The FLOPs of all copies."""
        return sum(group.extra_flops for group in self.groups)

    def extra_cost(self, cost: Sequence[int]) -> int:
        """Return the total cost of the copies. `cost`: the cost of one execution of each operation."""
        return sum(cost[op] for group in self.groups for op in group.operations)


def plan_nothing(_: Graph) -> Plan:
    """Return a plan without copies. This function is a planner for `RecomputeOptions(planner=…)`."""
    return Plan()
