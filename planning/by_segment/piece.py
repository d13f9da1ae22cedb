"""One segment under a budget for what it saves: what may be made again of it, from what, and at how much work.

Everything is said of storages: who keeps one can read all views of it, and who makes one again runs the operation that
owns it. `needs` has those that may be made again; `why` says of the others why they stay where they are wanted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass

from ..graph import Graph
from .saved import saved_storages

OUTPUT = "the forward pass reads it behind the segment, so it stays"
LIVES = "the update or the caller reads it"
ONCE = "its operation may run once only"
KEPT = "a mark keeps it"
FOR_OTHERS = "another segment is computed again from it"
FROM_OTHERS = "it is computed from what another segment may not keep"
TOO_EARLY = "it is read before any gradient has arrived that could hold its copy back"


@dataclass(frozen=True)
class Piece:
    """`wanted`: what the backward pass reads, whatever is copied. `sizes`: bytes of all storages that the segment makes
    and that count. `needs[s]`: the storages of the segment that the operation reads which makes s. `outside[op]`:
    storages of other segments that an operation reads. `work[op]`: of one execution, never 0. `never`: storages that a
    mark has made again, so that they are not kept."""

    wanted: frozenset[int]
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
        """Storages that are made again where these are kept, of which none is one that is never kept."""
        found, pending = set[int](), [one for one in self.wanted if one not in kept]
        while pending:
            one = pending.pop()
            if one not in found:
                found.add(one)
                pending += [need for need in self.needs.get(one, ()) if need not in kept]
        return frozenset(found)

    def used(self, kept: Set[int]) -> frozenset[int]:
        """Of what is kept what is read: by the backward pass, or by what is made again."""
        read = {need for one in self.again(kept) for need in self.needs.get(one, ())}
        return frozenset(one for one in kept if one in self.wanted or one in read)

    def work_of(self, again: Collection[int]) -> int:
        """Operations with several results run once for all of them."""
        return sum(self.work[op] for op in {self.maker[one] for one in again})

    def reads_outside(self, again: Collection[int]) -> frozenset[int]:
        """Storages of other segments that are read then."""
        return frozenset[int]().union(*(self.outside[self.maker[one]] for one in again))


@dataclass(frozen=True)
class Rules:
    """What holds for all segments: `once`, operations that may run once only; `outputs`, whether what leaves a segment
    may be made again too; `named`: the storages that some segment under a budget makes."""

    once: frozenset[int]
    outputs: bool
    named: frozenset[int]


@dataclass(frozen=True)
class Said:
    """What is said of storages besides: that they stay, and why (`stays`); that they are made again (`again`); that
    nothing may be made again from them (`barred`); that others read them too (`read`)."""

    stays: Mapping[int, str]
    again: frozenset[int] = frozenset()
    barred: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()


def piece_of(graph: Graph, operations: Collection[int], rules: Rules, said: Said) -> Piece:
    """The operations are those of one segment, all of the forward pass."""
    inside, returned = frozenset(operations), {graph.root[value] for value in graph.returned}
    free = graph.constants | returned
    made = [v for op in sorted(inside) for v in graph.makes[op] if graph.root[v] == v and v not in free]
    sizes = {v: graph.sizes[v] for v in made}
    roots = {op: {graph.root[v] for v in graph.reads[op]} - free for op in inside}
    why = {v: reason for v in made if (reason := _why_stays(graph, v, inside, rules, said)) is not None}
    outside = {op: frozenset((read & rules.named) - sizes.keys()) for op, read in roots.items()}
    for v in made:
        if v not in why and not said.barred.isdisjoint(outside[graph.maker[v]]):
            why[v] = FROM_OTHERS
    return Piece(
        wanted=saved_storages(graph, inside) | (said.read & sizes.keys()),
        sizes=sizes,
        needs={v: tuple(sorted(roots[graph.maker[v]] & sizes.keys())) for v in made if v not in why},
        maker={v: graph.maker[v] for v in made},
        outside=outside,
        work={op: graph.cost[op] + 1 for op in inside},
        why=why,
        never=frozenset(v for v in made if v in said.again and v not in why),
    )


def _why_stays(graph: Graph, storage: int, inside: Set[int], rules: Rules, said: Said) -> str | None:
    op = graph.maker[storage]
    if storage in graph.lives_on:
        return LIVES
    if op in rules.once or op in graph.literals or op in graph.copies:
        return ONCE
    if storage in said.read:
        return FOR_OTHERS
    if not rules.outputs and _is_output(graph, storage, inside):
        return OUTPUT
    return said.stays.get(storage)


def _is_output(graph: Graph, storage: int, inside: Set[int]) -> bool:
    readers = (reader for view in graph.views[storage] for reader in graph.readers[view])
    return any(graph.forward[reader] and reader not in inside for reader in readers)
