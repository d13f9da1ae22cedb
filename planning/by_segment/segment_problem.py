"""The problem of one segment under a budget: its storages, what recomputing each of them needs, and why some must stay.

Bytes that each segment of a step saves for the backward pass, without copies or under a plan.

A storage is saved if a forward operation of the segment makes it, and a gradient operation or a copy in the backward
pass reads it through any view. Constants cost nothing, and returned values are no temporaries.

One segment under a byte budget, as a problem: its storages, their dependences, and the work to recompute them.

The unit is the storage: a kept storage makes all of its views readable, and recomputing one runs the operation that
owns it. `needs` has the storages that may be recomputed; `why` has the reasons against the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass

from ..graph import Graph
from ..plan import Plan
from ..simulate import as_graph, simulate


def saved_storages(graph: Graph, operations: Iterable[int]) -> frozenset[int]:
    """Return the saved storages that these forward operations make, by their owners."""
    free = graph.constants | {graph.root[value] for value in graph.returned}
    return frozenset(
        value
        for op in operations
        for value in graph.makes[op]
        if graph.root[value] == value and value not in free and is_read_by_gradient(graph, value)
    )


def is_read_by_gradient(graph: Graph, storage: int) -> bool:
    return any(graph.gradient_readers[view] for view in graph.views[storage])


def saved_after(graph: Graph, plan: Plan, operations: Iterable[int]) -> frozenset[int]:
    """Return the `saved_storages` under a plan, with the value numbers of the graph."""
    program = simulate(graph, plan, ordered=False)
    members = set(operations)
    instructions = enumerate(program.operations)
    originals = [op for op, instruction in instructions if not instruction.is_new and instruction.origin in members]
    return saved_storages(as_graph(graph, program), originals)


def bytes_of(graph: Graph, storages: Iterable[int]) -> int:
    return sum(graph.sizes[storage] for storage in storages)


def saved_bytes(graph: Graph, segments: Mapping[str, Iterable[int]], plan: Plan | None = None) -> dict[str, int]:
    """Return the saved bytes of each segment. `segments`: the operations of each."""
    if plan is not None and plan.copies:
        return _bytes_after(graph, segments, plan)
    return {name: bytes_of(graph, saved_storages(graph, operations)) for name, operations in segments.items()}


def _bytes_after(graph: Graph, segments: Mapping[str, Iterable[int]], plan: Plan) -> dict[str, int]:
    members = {name: frozenset(operations) for name, operations in segments.items()}
    saved = saved_after(graph, plan, frozenset[int]().union(*members.values()))
    return {
        name: bytes_of(graph, (storage for storage in saved if graph.maker[storage] in operations))
        for name, operations in members.items()
    }


READ_BY_FORWARD = "the forward pass reads it after the segment, so it is kept"
LIVES = "the update or the caller reads it"
ONCE = "its operation must run only once"
KEPT_BY_MARK = "a mark keeps it"
FOR_OTHERS = "another segment is recomputed from it"
FROM_OTHERS = "it is computed from what another segment may not keep"
TOO_EARLY = "it is read before any gradient has arrived that could hold its copy back"


@dataclass(frozen=True)
class SegmentProblem:
    """The problem of one segment.

    needed: storages that the backward pass reads in any case.
    sizes: bytes of the storages that the segment makes, without constants and returned values.
    needs: for each recomputable storage, the storages of the segment that its operation reads.
    maker: the operation that makes each storage.
    outside: storages of other segments with a budget that each operation reads.
    work: cost of one execution of each operation, never 0.
    why: for each storage that must not be recomputed, the reason.
    never: storages that a mark recomputes, so that they are never kept.
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
        return sum(self.sizes[storage] for storage in storages)

    def again(self, kept: Set[int]) -> frozenset[int]:
        """Return the storages that must be recomputed if these are kept."""
        recomputed, pending = set[int](), [storage for storage in self.needed if storage not in kept]
        while pending:
            storage = pending.pop()
            if storage not in recomputed:
                recomputed.add(storage)
                pending += [need for need in self.needs.get(storage, ()) if need not in kept]
        return frozenset(recomputed)

    def used(self, kept: Set[int]) -> frozenset[int]:
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

    once: operations that must not run twice.
    outputs: whether outputs of a segment may be recomputed too.
    named: the storages that segments with a budget make.
    """

    once: frozenset[int]
    outputs: bool
    named: frozenset[int]


@dataclass(frozen=True)
class Restrictions:
    """Restrictions on storages.

    stays: storages that must not be recomputed, with the reason.
    again: storages that must be recomputed.
    barred: storages of other segments that no recomputed operation may read.
    read: storages that recomputed operations of other segments read.
    """

    stays: Mapping[int, str]
    again: frozenset[int] = frozenset()
    barred: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()


def segment_problem(
    graph: Graph, operations: Collection[int], rules: SegmentRules, restrictions: Restrictions
) -> SegmentProblem:
    """Return the problem of a segment. `operations`: those of the segment, all in the forward pass."""
    inside, returned = frozenset(operations), {graph.root[value] for value in graph.returned}
    free = graph.constants | returned
    made = [v for op in sorted(inside) for v in graph.makes[op] if graph.root[v] == v and v not in free]
    sizes = {v: graph.sizes[v] for v in made}
    roots = {op: {graph.root[v] for v in graph.reads[op]} - free for op in inside}
    why = {v: reason for v in made if (reason := _why_stays(graph, v, inside, rules, restrictions)) is not None}
    outside = {op: frozenset((read & rules.named) - sizes.keys()) for op, read in roots.items()}
    for v in made:
        if v not in why and not restrictions.barred.isdisjoint(outside[graph.maker[v]]):
            why[v] = FROM_OTHERS
    return SegmentProblem(
        needed=saved_storages(graph, inside) | (restrictions.read & sizes.keys()),
        sizes=sizes,
        needs={v: tuple(sorted(roots[graph.maker[v]] & sizes.keys())) for v in made if v not in why},
        maker={v: graph.maker[v] for v in made},
        outside=outside,
        work={op: graph.cost[op] + 1 for op in inside},
        why=why,
        never=frozenset(v for v in made if v in restrictions.again and v not in why),
    )


def _why_stays(
    graph: Graph, storage: int, inside: Set[int], rules: SegmentRules, restrictions: Restrictions
) -> str | None:
    op = graph.maker[storage]
    if storage in graph.lives_on:
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
