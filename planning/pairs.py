"""Make a plan from pairs (place, operation), where each pair is a copy of the operation before the place.

Solvers return pairs; gates, inputs and readers follow from the graph. Any pairs whose operation is before the place
give a valid program: each use reads the latest copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .by_segment.copy_groups import freed_bytes, pinned_bytes
from .by_segment.copy_requests import NO_GATE
from .gates import gates_for
from .graph import Graph
from .plan import Batch, CopyGroup, Kept, Plan


def plan_of_pairs(graph: Graph, pairs: Iterable[tuple[int, int]], segment: str = "", chain: bool = False) -> Plan:
    """Return a plan with one copy group for each place.

    A group replaces the values that the backward pass or a later copy reads from its place on.

    Args:
        pairs: The pairs (place, operation), with the operation before the place.
        segment: The segment of all groups.
        chain: Whether each group also waits for the last gradient value before it.

    Returns:
        The plan. Operations whose copies no gate would delay are kept, with the reason.

    Raises:
        ValueError: For an operation or a place that does not exist, and for a place that is not after the operation.
    """
    operations_at = dict[int, set[int]]()
    for place, op in pairs:
        if not 0 <= op < place <= len(graph.names):
            expected = f"numbers below {len(graph.names)}, and a place after the operation"
            raise ValueError(f"invalid pair ({place}, {op}): expected {expected}")
        operations_at.setdefault(place, set()).add(op)
    groups, kept, numbers = list[CopyGroup](), list[Kept](), dict[int, int]()
    copied_later, handed_out = set[int](), {v for v in graph.returned if graph.root[v] in graph.handed_out}
    for place in sorted(operations_at, reverse=True):
        operations = sorted(operations_at[place])
        replaced = [v for v in graph.results_of(operations) if v in copied_later or _is_read_from(graph, v, place)]
        replaced = [v for v in replaced if v not in handed_out]
        readers = {op for v in replaced for op in graph.readers[v] if op >= place and not graph.forward[op]}
        gates = gates_for(graph, replaced, readers or {place}, place, chain)
        if not gates or not replaced:
            kept.append(Kept(segment, operations[0], NO_GATE))
            continue
        inputs = graph.outside_of(operations)
        copied_later.update(inputs)
        groups.append(
            CopyGroup(
                segment=segment,
                before=place,
                batches=(Batch(tuple(operations), inputs),),
                numbers=(),
                replaces=tuple(replaced),
                gates=gates,
                freed_bytes=freed_bytes(graph, replaced, inputs, place),
                pinned_bytes=pinned_bytes(graph, inputs, place),
                extra_flops=sum(graph.flops[op] for op in operations),
            )
        )
    return Plan(tuple(_with_numbers(group, numbers) for group in reversed(groups)), tuple(reversed(kept)))


def _is_read_from(graph: Graph, value: int, place: int) -> bool:
    return any(reader >= place and not graph.forward[reader] for reader in graph.readers[value])


def _with_numbers(group: CopyGroup, copies_so_far: dict[int, int]) -> CopyGroup:
    for op in group.operations:
        copies_so_far[op] = copies_so_far.get(op, 0) + 1
    return replace(group, numbers=tuple(copies_so_far[op] for op in group.operations))
