"""Make a plan from pairs (place, operation). Each pair represents a copy of `operation` that is inserted before the
operation `place`.

Solvers return pairs; the gates, inputs and readers of the copies follow from the graph. Any set of pairs whose
operations precede their places gives a valid program. In this program, each use reads the latest copy.
"""

from __future__ import annotations

from collections.abc import Iterable

from .gates import gates_for
from .graph import Graph
from .plan import CopyGroup, NotRecomputed, Plan
from .skip_reason import SkipReason
from .unsplit_groups import unsplit_group, with_numbers


def plan_of_pairs(graph: Graph, pairs: Iterable[tuple[int, int]], segment: str = "", chain: bool = False) -> Plan:
    """Return a plan with one copy group for each place.

    A group replaces the values that the backward pass, or a later copy, reads after the place of the group.

    Args:
        graph: The graph of the step.
        pairs: The pairs (place, operation), where the operation precedes the place.
        segment: The segment of all groups.
        chain: Whether each group also waits for the last gradient value before it.

    Returns:
        The plan. Operations whose copies no gate would delay are listed as kept, with the reason.

    Raises:
        ValueError: If an operation or a place does not exist, or if a place does not follow its operation.
    """
    operations_at = _operations_by_place(graph, pairs)
    groups = list[CopyGroup]()
    entries = list[NotRecomputed]()
    copied_later = set[int]()
    for place in sorted(operations_at, reverse=True):
        operations = sorted(operations_at[place])
        replaced = [v for v in graph.results_of(operations) if v in copied_later or _is_read_from(graph, v, place)]
        replaced = [v for v in replaced if not (v in graph.returned and graph.root[v] in graph.returned_forward)]
        readers = {op for v in replaced for op in graph.readers[v] if op >= place and not graph.forward[op]}
        gates = gates_for(graph, replaced, readers or {place}, place, chain)
        if not gates or not replaced:
            entries.append(NotRecomputed(segment, operations[0], SkipReason.NO_GATE))
            continue
        group = unsplit_group(graph, segment, before=place, operations=operations, replaced=replaced, gates=gates)
        groups.append(group)
        copied_later.update(group.inputs)
    copy_counts = dict[int, int]()
    numbered = tuple(with_numbers(group, copy_counts) for group in reversed(groups))
    return Plan(numbered, tuple(reversed(entries)))


def _operations_by_place(graph: Graph, pairs: Iterable[tuple[int, int]]) -> dict[int, set[int]]:
    """Return the set of operations to copy at each place. Raises `ValueError` for an invalid pair."""
    operations_at = dict[int, set[int]]()
    for place, op in pairs:
        if not 0 <= op < place <= len(graph):
            expected = f"(place, operation) with 0 <= operation < place <= {len(graph)}"
            raise ValueError(f"invalid pair ({place}, {op}): expected {expected}")
        operations_at.setdefault(place, set()).add(op)
    return operations_at


def _is_read_from(graph: Graph, value: int, place: int) -> bool:
    return any(reader >= place and not graph.forward[reader] for reader in graph.readers[value])
