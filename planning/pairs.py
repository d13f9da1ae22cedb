"""A plan from pairs: run this operation again in front of that one. What solvers under a budget think in; gates, inputs
and readers follow from the graph.

Any set of pairs of which the operation stands before the place is a program: each use reads the latest copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .by_segment.benefit import freed_bytes, pinned_bytes
from .by_segment.reasons import NO_GATE
from .gates import gates_for
from .graph import Graph
from .plan import Batch, CopyGroup, Kept, Plan


def plan_of_pairs(graph: Graph, pairs: Iterable[tuple[int, int]], segment: str = "", chain: bool = False) -> Plan:
    """One copy group for each place. `pairs`: (place, operation), the operation before the place. `chain`: each also
    waits for what the gradient made last.

    A group replaces what is read from its place on, by the backward pass or by a later copy; what nothing can hold back
    is kept, with the reason. Raises `ValueError` for an operation, or a place, that there is not, and for a place that
    is not behind the operation.
    """
    at = dict[int, set[int]]()
    for place, op in pairs:
        if not 0 <= op < place <= len(graph.names):
            numbered = f"there are {len(graph.names)} operations, numbered from 0, and each runs again behind itself"
            raise ValueError(f"pair ({place}, {op}): {numbered}")
        at.setdefault(place, set()).add(op)
    groups, kept, numbers = list[CopyGroup](), list[Kept](), dict[int, int]()
    copied_later = set[int]()
    for place in sorted(at, reverse=True):
        operations = sorted(at[place])
        replaced = [v for v in graph.results_of(operations) if v in copied_later or _is_read_from(graph, v, place)]
        readers = {one for v in replaced for one in graph.readers[v] if one >= place and not graph.forward[one]}
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
    return Plan(tuple(_numbered(group, numbers) for group in reversed(groups)), tuple(reversed(kept)))


def _is_read_from(graph: Graph, value: int, place: int) -> bool:
    return any(reader >= place and not graph.forward[reader] for reader in graph.readers[value])


def _numbered(group: CopyGroup, taken: dict[int, int]) -> CopyGroup:
    for op in group.operations:
        taken[op] = taken.get(op, 0) + 1
    return replace(group, numbers=tuple(taken[op] for op in group.operations))
