"""The problem of choosing the storages that one segment keeps within a byte budget.

A problem consists of the storages that the segment makes, the dependences between them, and the work to recompute them.
A kept storage makes all of its views readable. Recomputing a storage runs the operation that makes it. `operands`
contains an entry for each storage that may be recomputed. For each storage that must not be recomputed, `reasons`
contains the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass

from ..graph import Graph
from .saved_storages import saved_storages

# Reasons for messages: why a storage is not recomputed.
READ_BY_FORWARD = "the forward pass reads it after the segment, so it is kept"
LIVES = "the update or the caller reads it"
ONCE = "its operation must run only once"
KEPT_BY_MARK = "it is marked to be saved"
FOR_OTHERS = "another segment is recomputed from it"
FROM_OTHERS = "it is computed from values that another segment may not keep"
TOO_EARLY = "it is read before any gradient value exists that could delay its copy"


@dataclass(frozen=True)
class SegmentProblem:
    """The problem of choosing the storages that one segment keeps.

    Attributes:
        needed: The storages that the backward pass reads.
        sizes: The bytes of the storages that the segment makes, without constants and returned values.
        operands: For each recomputable storage, the storages of the segment that its operation reads.
        makers: The operation that makes each storage.
        operands_outside: For each operation, the storages that it reads and that another segment with a budget makes.
        work: The cost of one execution of each operation, never 0.
        reasons: For each storage that must not be recomputed, the reason for messages.
        never_kept: The storages that must not be kept, because a mark requires their recomputation.
    """

    needed: frozenset[int]
    sizes: Mapping[int, int]
    operands: Mapping[int, tuple[int, ...]]
    makers: Mapping[int, int]
    operands_outside: Mapping[int, frozenset[int]]
    work: Mapping[int, int]
    reasons: Mapping[int, str]
    never_kept: frozenset[int]

    def bytes(self, storages: Collection[int]) -> int:
        """Return the total bytes of the storages."""
        return sum(self.sizes[storage] for storage in storages)

    def recomputed_without(self, kept_storages: Set[int]) -> frozenset[int]:
        """Return the storages that must be recomputed if only `kept_storages` are saved."""
        recomputed = set[int]()
        pending = [storage for storage in self.needed if storage not in kept_storages]
        while pending:
            storage = pending.pop()
            if storage not in recomputed:
                recomputed.add(storage)
                pending += [need for need in self.operands.get(storage, ()) if need not in kept_storages]
        return frozenset(recomputed)

    def read_storages(self, kept_storages: Set[int]) -> frozenset[int]:
        """Return the kept storages that the backward pass or a recomputed operation reads."""
        read = {need for storage in self.recomputed_without(kept_storages) for need in self.operands.get(storage, ())}
        return frozenset(storage for storage in kept_storages if storage in self.needed or storage in read)

    def work_of(self, storages: Collection[int]) -> int:
        """Return the work to recompute these storages; an operation with several results runs once for all of them."""
        return sum(self.work[op] for op in {self.makers[storage] for storage in storages})

    def reads_outside(self, storages: Collection[int]) -> frozenset[int]:
        """Return the storages of other segments that the recomputation of these storages reads."""
        return frozenset[int]().union(*(self.operands_outside[self.makers[storage]] for storage in storages))


@dataclass(frozen=True)
class SegmentRules:
    """Rules that apply to all segments with a budget.

    Attributes:
        run_once: Operations that must not run twice.
        recomputes_outputs: Whether segment outputs may also be recomputed.
        storages: The storages that any segment with a budget makes.
    """

    run_once: frozenset[int]
    recomputes_outputs: bool
    storages: frozenset[int]


@dataclass(frozen=True)
class Restrictions:
    """Restrictions on the storages of one segment.

    Attributes:
        not_recomputable: Storages that must not be recomputed, with the reason.
        must_recompute: Storages that must be recomputed.
        barred: Storages of other segments that no recomputed operation may read.
        read_by_others: Storages that recomputed operations of other segments read.
    """

    not_recomputable: Mapping[int, str]
    must_recompute: frozenset[int] = frozenset()
    barred: frozenset[int] = frozenset()
    read_by_others: frozenset[int] = frozenset()


def segment_problem(
    graph: Graph, operations: Collection[int], rules: SegmentRules, restrictions: Restrictions
) -> SegmentProblem:
    """Return the problem of a segment under the rules and restrictions.

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
    outside = {op: frozenset((read & rules.storages) - sizes.keys()) for op, read in roots.items()}
    for v in storages:
        if v not in why and not restrictions.barred.isdisjoint(outside[graph.maker[v]]):
            why[v] = FROM_OTHERS
    return SegmentProblem(
        needed=saved_storages(graph, inside) | (restrictions.read_by_others & sizes.keys()),
        sizes=sizes,
        operands={v: tuple(sorted(roots[graph.maker[v]] & sizes.keys())) for v in storages if v not in why},
        makers={v: graph.maker[v] for v in storages},
        operands_outside=outside,
        work={op: graph.cost[op] + 1 for op in inside},
        reasons=why,
        never_kept=frozenset(v for v in storages if v in restrictions.must_recompute and v not in why),
    )


def _why_kept(
    graph: Graph, storage: int, inside: Set[int], rules: SegmentRules, restrictions: Restrictions
) -> str | None:
    """Return the reason why a storage must not be recomputed; None if it may be recomputed. `inside`: the operations of
    the segment."""
    op = graph.maker[storage]
    if storage in graph.live_after_backward:
        return LIVES
    if op in rules.run_once or op in graph.literals or op in graph.copies:
        return ONCE
    if storage in restrictions.read_by_others:
        return FOR_OTHERS
    if not rules.recomputes_outputs and _is_output(graph, storage, inside):
        return READ_BY_FORWARD
    return restrictions.not_recomputable.get(storage)


def _is_output(graph: Graph, storage: int, inside: Set[int]) -> bool:
    readers = (reader for view in graph.views[storage] for reader in graph.readers[view])
    return any(graph.forward[reader] and reader not in inside for reader in readers)
