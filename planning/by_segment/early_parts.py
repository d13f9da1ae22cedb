"""Find the early parts of segments: operations that do not depend on preceding segments, and that may therefore run
long before the rest of their segment.

For example, the random bits of every layer depend only on keys. A breadth-first executor (XLA:CPU) computes these
values for all layers before the first layer, and keeps them live. A barrier delays them until the input of their own
layer is available.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..graph import NO_MAKER, Graph
from .batches import MIN_BATCH_SHARE, excess_bytes


@dataclass(frozen=True)
class EarlyPart:
    """A part of a segment that could run long before the remaining operations of the segment.

    Attributes:
        segment: The name of the segment.
        operations: The operations of the part.
        inputs: The values from outside the part that it reads.
        awaited: The inputs of the segment that become available last. The part does not depend on them.
    """

    segment: str
    operations: tuple[int, ...]
    inputs: tuple[int, ...]
    awaited: tuple[int, ...]

    @property
    def barrier_operands(self) -> tuple[int, ...]:
        """The operands of a barrier before the part: the values that it waits for, and the values that it delays."""
        return tuple(dict.fromkeys((*self.awaited, *self.inputs)))


def early_parts(graph: Graph, segment_of: Mapping[int, str]) -> list[EarlyPart]:
    """Return the early parts that are worth delaying. Such a part can be delayed by a barrier at its present position,
    and the delay frees enough memory.

    Args:
        graph: The graph of the step.
        segment_of: The segments of forward operations, in program order.
    """
    members = dict[str, list[int]]()
    for op, segment in segment_of.items():
        members.setdefault(segment, []).append(op)
    turns = _turns(graph, segment_of)
    parts = (_early_part(graph, segment, operations, turns) for segment, operations in members.items())
    return [part for part in parts if part is not None]


def _turns(graph: Graph, segment_of: Mapping[int, str]) -> list[int]:
    """Return, for each operation, the number of segments on the longest dependence path that ends in it."""
    turns = list[int]()
    for op, producers in enumerate(graph.producers):
        if (own := segment_of.get(op)) is None:
            turns.append(max([turns[producer] for producer in producers], default=0))
        else:
            before = [turns[producer] - (segment_of.get(producer) == own) for producer in producers]
            turns.append(max(before, default=0) + 1)
    return turns


def _early_part(graph: Graph, segment: str, operations: Sequence[int], turns: Sequence[int]) -> EarlyPart | None:
    """Return the early part of a segment; None if there is no such part, if delaying it frees too little memory, or if
    it cannot be delayed."""
    inputs = graph.outside_of(operations)
    turn_of = {value: 0 if graph.maker[value] == NO_MAKER else turns[graph.maker[value]] for value in inputs}
    last_turn = max(turn_of.values(), default=0)
    if last_turn == 0:
        return None
    dependent = {value for value in inputs if turn_of[value] > 0}
    for op in operations:
        if not dependent.isdisjoint(graph.reads[op]):
            dependent.update(graph.makes[op])
    part = [op for op in operations if dependent.isdisjoint(graph.makes[op]) and op not in graph.literals]
    if not part or excess_bytes(graph, part) <= MIN_BATCH_SHARE * _saved_bytes(graph, operations):
        return None
    awaited = tuple([value for value in inputs if turn_of[value] == last_turn])
    early = EarlyPart(segment, tuple(part), graph.outside_of(part), awaited)
    # Waiting for values that are defined later in program order could create a cycle.
    return early if part[0] > max(graph.maker[value] for value in early.barrier_operands) else None


def _saved_bytes(graph: Graph, operations: Sequence[int]) -> int:
    """Return the bytes that the segment saves for the backward pass without recomputation."""
    values = graph.results_of(operations)
    return sum(graph.sizes[value] for value in values if graph.root[value] == value and graph.gradient_readers[value])
