"""Which parts of a segment an executor would run long before the segment: those that need no value from before it.

The random bits of every layer depend on keys alone. An executor that goes through the program breadth first (XLA:CPU)
makes those of all layers before the first layer, and keeps them alive; the layer's own input would have come in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..graph import OUTSIDE, Graph
from ..objective import BATCH_SHARE
from .batches import excess_bytes


@dataclass(frozen=True)
class Early:
    """`operations` of a segment that could run as soon as `inputs` are there, long before its own `awaited`."""

    segment: str
    operations: tuple[int, ...]
    inputs: tuple[int, ...]
    awaited: tuple[int, ...]

    @property
    def waiting(self) -> tuple[int, ...]:
        """What a barrier in front of the part holds back, and what it waits for."""
        return tuple(dict.fromkeys((*self.awaited, *self.inputs)))


def early_parts(graph: Graph, segment_of: Mapping[int, str]) -> list[Early]:
    """The part of each segment that is worth holding back, and can wait where it stands.

    `segment_of`: the segments of forward operations, in program order.
    """
    members = dict[str, list[int]]()
    for op, segment in segment_of.items():
        members.setdefault(segment, []).append(op)
    turns = _turns(graph, segment_of)
    return [one for segment, operations in members.items() for one in _early(graph, segment, operations, turns)]


def _turns(graph: Graph, segment_of: Mapping[int, str]) -> list[int]:
    """For each operation how many segments, one after the other, have run when its results are there."""
    found = list[int]()
    for op, producers in enumerate(graph.producers):
        if (own := segment_of.get(op)) is None:
            found.append(max([found[producer] for producer in producers], default=0))
        else:
            before = [found[producer] - (segment_of.get(producer) == own) for producer in producers]
            found.append(max(before, default=0) + 1)
    return found


def _early(graph: Graph, segment: str, operations: Sequence[int], turns: Sequence[int]) -> Iterator[Early]:
    inputs = graph.outside_of(operations)
    turn = {value: 0 if graph.maker[value] == OUTSIDE else turns[graph.maker[value]] for value in inputs}
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
        found = Early(segment, tuple(part), graph.outside_of(part), awaited)
        # What it would wait for may come later in program order: waiting could be a cycle.
        if part[0] > max(graph.maker[value] for value in found.waiting):
            yield found


def _saved_bytes(graph: Graph, operations: Sequence[int]) -> int:
    """Bytes of the segment that the backward pass reads in the plain step."""
    values = graph.results_of(operations)
    return sum(graph.sizes[value] for value in values if graph.root[value] == value and graph.gradient_readers[value])
