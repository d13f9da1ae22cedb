"""Describe one segment under a byte budget as a problem: its storages, their dependences, and the work to recompute
them.

The unit is the storage: a kept storage makes all of its views readable, and recomputing one runs the operation that
owns it. `needs` has the storages that may be recomputed; `why` has the reasons against the other operations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass

from ..graph import Graph
from .saved_storages import saved_storages

# The reasons that a storage is not recomputed, for messages.
READ_BY_FORWARD = "the forward pass reads it after the segment, so it is kept"
LIVES = "the update or the caller reads it"
ONCE = "its operation must run only once"
KEPT_BY_MARK = "a mark keeps it"
FOR_OTHERS = "another segment is recomputed from it"
FROM_OTHERS = "it is computed from values that another segment may not keep"
TOO_EARLY = "it is read before any gradient value exists that could delay its copy"


@dataclass(frozen=True)
class SegmentProblem:
    """The problem of one segment.

    Attributes:
        needed: The storages that the backward pass reads.
        sizes: The bytes of the storages that the segment makes, without constants and returned values.
        needs: For each recomputable storage, the storages of the segment that its operation reads.
        maker: The operation that makes each storage.
        outside: For each operation, the storages that it reads of other segments with a budget.
        work: The cost of one execution of each operation, never 0.
        why: For each storage that must not be recomputed, the reason.
        never: The storages that are never kept, because a mark demands to recompute them.
    """

    needed: frozenset[int]
    sizes: Mapping[int, int]
    needs: Mapping[int, tuple[int, ...]]
    maker: Mapping[int, int]
    outside: Mapping[int, frozenset[int]]
    work: Mapping[int, int]
    why: Mapping[int, str]
    never: frozenset[int]

    def bytes(self, storages: Collection[int]) -> int:
        """Return the total bytes of the storages."""
        return sum(self.sizes[storage] for storage in storages)

    def again(self, kept: Set[int]) -> frozenset[int]:
        """Return the storages that must be recomputed if the `kept` ones are saved."""
        recomputed = set[int]()
        pending = [storage for storage in self.needed if storage not in kept]
        while pending:
            storage = pending.pop()
            if storage not in recomputed:
                recomputed.add(storage)
                pending += [need for need in self.needs.get(storage, ()) if need not in kept]
        return frozenset(recomputed)

    def read_storages(self, kept: Set[int]) -> frozenset[int]:
        """Return the kept storages that the backward pass or a recomputed operation reads."""
        read = {need for storage in self.again(kept) for need in self.needs.get(storage, ())}
        return frozenset(storage for storage in kept if storage in self.needed or storage in read)

    def work_of(self, again: Collection[int]) -> int:
        """Return the work to recompute these storages; an operation with several results runs once for all of them."""
        return sum(self.work[op] for op in {self.maker[storage] for storage in again})

    def reads_outside(self, again: Collection[int]) -> frozenset[int]:
        """Return the storages of other segments that recomputing these reads."""
        return frozenset[int]().union(*(self.outside[self.maker[storage]] for storage in again))


@dataclass(frozen=True)
class SegmentRules:
    """Rules for all segments.

    Attributes:
        once: Operations that must not run twice.
        outputs: Whether outputs of a segment may be recomputed too.
        named: The storages that segments with a budget make.
    """

    once: frozenset[int]
    outputs: bool
    named: frozenset[int]


@dataclass(frozen=True)
class Restrictions:
    """Restrictions on the storages of one segment.

    Attributes:
        stays: Storages that must not be recomputed, with the reason.
        again: Storages that must be recomputed.
        barred: Storages of other segments that no recomputed operation may read.
        read: Storages that recomputed operations of other segments read.
    """

    stays: Mapping[int, str]
    again: frozenset[int] = frozenset()
    barred: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()


def segment_problem(
    graph: Graph, operations: Collection[int], rules: SegmentRules, restrictions: Restrictions
) -> SegmentProblem:
    """Return the problem of a segment.

    Args:
        graph: The graph of the step.
        operations: The operations of the segment, all in the forward pass.
        rules: The rules for all segments.
        restrictions: The restrictions on the storages of this segment.
    """
    inside = frozenset(operations)
    returned = {graph.root[value] for value in graph.returned}
    free = graph.constants | returned
    storages = [v for op in sorted(inside) for v in graph.makes[op] if graph.root[v] == v and v not in free]
    sizes = {v: graph.sizes[v] for v in storages}
    roots = {op: {graph.root[v] for v in graph.reads[op]} - free for op in inside}
    why = {v: reason for v in storages if (reason := _why_kept(graph, v, inside, rules, restrictions)) is not None}
    outside = {op: frozenset((read & rules.named) - sizes.keys()) for op, read in roots.items()}
    for v in storages:
        if v not in why and not restrictions.barred.isdisjoint(outside[graph.maker[v]]):
            why[v] = FROM_OTHERS
    return SegmentProblem(
        needed=saved_storages(graph, inside) | (restrictions.read & sizes.keys()),
        sizes=sizes,
        needs={v: tuple(sorted(roots[graph.maker[v]] & sizes.keys())) for v in storages if v not in why},
        maker={v: graph.maker[v] for v in storages},
        outside=outside,
        work={op: graph.cost[op] + 1 for op in inside},
        why=why,
        never=frozenset(v for v in storages if v in restrictions.again and v not in why),
    )


def _why_kept(
    graph: Graph, storage: int, inside: Set[int], rules: SegmentRules, restrictions: Restrictions
) -> str | None:
    """Return the reason that a storage must not be recomputed; None if it may. `inside`: the operations of the
    segment."""
    op = graph.maker[storage]
    if storage in graph.live_after_backward:
        return LIVES
    if op in rules.once or op in graph.literals or op in graph.copies:
        return ONCE
    if storage in restrictions.read:
        return FOR_OTHERS
    if not rules.outputs and _is_output(graph, storage, inside):
        return READ_BY_FORWARD
    return restrictions.stays.get(storage)


def _is_output(graph: Graph, storage: int, inside: Set[int]) -> bool:
    readers = (reader for view in graph.views[storage] for reader in graph.readers[view])
    return any(graph.forward[reader] and reader not in inside for reader in readers)
