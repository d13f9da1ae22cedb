"""Operations far from their readers: early in the forward pass, or for the backward pass alone.

Early parts of segments: operations that do not depend on preceding segments, and may run long before their own.

The random bits of every layer depend on keys alone. A breadth-first executor (XLA:CPU) makes those of all layers before
the first layer, and keeps them live. Making them wait for the input of their own layer delays them.

Sink operations outside of segments into the backward pass if only the backward pass reads them.

Masks and local derivatives are computed in the forward pass, next to their operation. A copy after a gradient replaces
the original, which becomes dead, so no arithmetic is added. The caller must check that bytes are saved: sinking a
comparison, for example, pins its large operand in place of its small result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..graph import NO_MAKER, Graph
from ..objective import BATCH_SHARE
from .copy_groups import excess_bytes


@dataclass(frozen=True)
class Early:
    """`operations` of a segment that depend only on `inputs`, which exist long before other inputs, `awaited`."""

    segment: str
    operations: tuple[int, ...]
    inputs: tuple[int, ...]
    awaited: tuple[int, ...]

    @property
    def waiting(self) -> tuple[int, ...]:
        """The operands of a barrier before the part: the values it waits for, and the values it delays."""
        return tuple(dict.fromkeys((*self.awaited, *self.inputs)))


def early_parts(graph: Graph, segment_of: Mapping[int, str]) -> list[Early]:
    """Return the part of each segment that is worth delaying, and can wait without being moved.

    `segment_of`: the segments of forward operations, in program order.
    """
    members = dict[str, list[int]]()
    for op, segment in segment_of.items():
        members.setdefault(segment, []).append(op)
    turns = _turns(graph, segment_of)
    return [early for segment, operations in members.items() for early in _early(graph, segment, operations, turns)]


def _turns(graph: Graph, segment_of: Mapping[int, str]) -> list[int]:
    """Return for each operation the number of segments on the longest dependence path to its results."""
    turns = list[int]()
    for op, producers in enumerate(graph.producers):
        if (own := segment_of.get(op)) is None:
            turns.append(max([turns[producer] for producer in producers], default=0))
        else:
            before = [turns[producer] - (segment_of.get(producer) == own) for producer in producers]
            turns.append(max(before, default=0) + 1)
    return turns


def _early(graph: Graph, segment: str, operations: Sequence[int], turns: Sequence[int]) -> Iterator[Early]:
    inputs = graph.outside_of(operations)
    turn = {value: 0 if graph.maker[value] == NO_MAKER else turns[graph.maker[value]] for value in inputs}
    last = max(turn.values(), default=0)
    if last == 0:
        return
    waiting = {value for value in inputs if turn[value] > 0}
    for op in operations:
        if not waiting.isdisjoint(graph.reads[op]):
            waiting.update(graph.makes[op])
    part = [op for op in operations if waiting.isdisjoint(graph.makes[op]) and op not in graph.literals]
    if part and excess_bytes(graph, part) > BATCH_SHARE * _saved_bytes(graph, operations):
        awaited = tuple([value for value in inputs if turn[value] == last])
        early = Early(segment, tuple(part), graph.outside_of(part), awaited)
        # Waiting for values that are defined later in program order could create a cycle.
        if part[0] > max(graph.maker[value] for value in early.waiting):
            yield early


def _saved_bytes(graph: Graph, operations: Sequence[int]) -> int:
    """Return the residual bytes of the segment without recomputation."""
    values = graph.results_of(operations)
    return sum(graph.sizes[value] for value in values if graph.root[value] == value and graph.gradient_readers[value])


def sinkable(graph: Graph, taken: Collection[int]) -> list[list[int]]:
    """Return the groups of operations, each in program order, whose results only gradient operations and the group
    read.

    `taken`: operations in a segment or with a mark, which are not moved.
    """
    sunk = set[int]()
    for op in reversed(range(len(graph))):
        if not graph.forward[op] or op in taken or op in graph.literals or graph.effects[op] is not None:
            continue
        readers = [reader for value in graph.makes[op] for reader in graph.readers[value]]
        constant = all(value in graph.constants for value in graph.makes[op])
        if readers and not constant and all(graph.gradient[reader] or reader in sunk for reader in readers):
            sunk.add(op)
    return _connected(graph, sorted(sunk))


def _connected(graph: Graph, operations: Collection[int]) -> list[list[int]]:
    """Return the connected components of the operations under use-def edges."""
    group = {op: [op] for op in operations}
    for op in operations:
        for producer in graph.producers[op]:
            if producer in group and group[producer] is not group[op]:
                joined = group[producer] + group[op]
                group.update(dict.fromkeys(joined, joined))
    distinct = {id(members): members for members in group.values()}
    return [sorted(members) for members in distinct.values()]
