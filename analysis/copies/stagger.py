"""Which parts of a segment an executor would run long before the segment: those that need no value from before it.

The random bits of every layer depend on keys alone. An executor that goes through the program breadth first (XLA:CPU)
makes those of all layers before the first layer, and keeps them alive; the layer's own input would have come in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...planning.by_segment.batches import excess_bytes
from ...planning.graph import OUTSIDE, Graph
from ...planning.objective import BATCH_SHARE
from ..request.segments import find_segments
from ..step.phases import Phases
from ..step.step import Step


@dataclass(frozen=True)
class Early:
    """`operations` of a segment that could run as soon as `inputs` are there, long before its own `awaited`."""

    segment: str
    operations: tuple[Operation, ...]
    inputs: tuple[SSAValue, ...]
    awaited: tuple[SSAValue, ...]


def early_parts(phases: Phases, pattern: str = "auto") -> list[Early]:
    """The part of each segment that is worth holding back. Raises `NoSuchSegment`."""
    step = Step.of(phases, bare=True)
    members = dict[str, list[int]]()
    for op, segment in find_segments(phases, pattern).items():
        members.setdefault(segment, []).append(step.position(op))
    turns = _turns(step.graph, members)
    return [one for segment, operations in members.items() for one in _early(step, segment, operations, turns)]


def _turns(graph: Graph, members: Mapping[str, Sequence[int]]) -> list[int]:
    """For each operation how many segments, one after the other, have run when its results are there."""
    segment_of = {op: segment for segment, operations in members.items() for op in operations}
    found = list[int]()
    for op, producers in enumerate(graph.producers):
        own = segment_of.get(op)
        before = [found[one] - (own is not None and segment_of.get(one) == own) for one in producers]
        found.append(max(before, default=0) + (own is not None))
    return found


def _early(step: Step, segment: str, operations: Sequence[int], turns: Sequence[int]) -> Iterator[Early]:
    graph = step.graph
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
        numbered = step.numbered
        awaited = [value for value in inputs if turn[value] == last]
        yield Early(
            segment,
            tuple(numbered.operations_of(part)),
            tuple(numbered.values_of(graph.outside_of(part))),
            tuple(numbered.values_of(awaited)),
        )


def _saved_bytes(graph: Graph, operations: Sequence[int]) -> int:
    """Bytes of the segment that the backward pass reads in the plain step."""
    values = graph.results_of(operations)
    return sum(graph.sizes[value] for value in values if graph.root[value] == value and graph.gradient_readers[value])
