"""Smaller plans from one plan: copies are dropped, or replaced by the copies of a cheaper plan, segment by segment or
place by place, in the order of the backward pass, or by bytes saved per FLOP, the least first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ..planning.graph import Graph
from ..planning.pairs import plan_of_pairs
from ..planning.plan import CopyGroup, Plan

FAMILY_SIZE = 12
"""The approximate number of plans that are made of one plan in each of two orders."""

T = TypeVar("T")


def thin_out(plan: Plan) -> Iterator[Sequence[tuple[frozenset[str], Plan]]]:
    """Yield two sequences of plans with ever fewer segments, each with the names of the remaining segments."""
    for names in _segment_sequences(plan):
        yield [(kept, _with_segments(plan, kept)) for kept in names]


def mix(plan: Plan, cheaper: Plan) -> Iterator[Sequence[tuple[frozenset[str], Plan]]]:
    """Yield two sequences of plans in which ever more segments are copied as in `cheaper`, a plan with the same
    segments, each with the names of the segments that are copied as in `plan`."""
    for names in _segment_sequences(plan):
        yield [(kept, _with_others(_with_segments(plan, kept), cheaper, kept)) for kept in names]


def _segment_sequences(plan: Plan) -> Iterator[Sequence[frozenset[str]]]:
    """Yield two sequences of ever smaller sets of the plan's segments."""
    groups = dict[str, list[CopyGroup]]()
    for group in sorted(plan.groups, key=lambda group: group.before):
        groups.setdefault(group.segment, []).append(group)
    names = [name for name in groups if name]
    for order in (names, sorted(names, key=lambda name: _worth(groups[name]))):
        yield [frozenset(kept) for kept in _fewer(order, FAMILY_SIZE)]


def _with_segments(plan: Plan, names: frozenset[str]) -> Plan:
    return replace(plan, groups=tuple([group for group in plan.groups if not group.segment or group.segment in names]))


def _with_others(plan: Plan, cheaper: Plan, names: frozenset[str]) -> Plan:
    """Add the copies of the other segments as in `cheaper`, and number the copies of each operation again."""
    others = [group for group in cheaper.groups if group.segment and group.segment not in names]
    groups, counts = list[CopyGroup](), Counter[int]()
    for group in sorted((*plan.groups, *others), key=lambda group: group.before):
        counts.update(group.operations)
        groups.append(replace(group, numbers=tuple([counts[op] for op in group.operations])))
    return replace(plan, groups=tuple(groups))


def fewer_groups(plan: Plan, steps: int) -> Iterator[Sequence[Sequence[CopyGroup]]]:
    """Yield two sequences of ever smaller subsets of the plan's groups: groups are dropped in the order of the backward
    pass, and by bytes saved per FLOP, the least first."""
    in_turn = sorted(plan.groups, key=lambda group: group.before)
    for order in (in_turn, sorted(in_turn, key=lambda group: _worth([group]))):
        yield list(_fewer(order, steps))


def with_groups(graph: Graph, groups: Iterable[CopyGroup]) -> Plan:
    """Make the plan of only these groups. Reads of copies in other groups become reads of the originals."""
    # Only callers that need the solvers wait for their import.
    from ..planning.solvers.solve_graph import pairs_with_views

    pairs = {(group.before, op) for group in groups for op in group.operations}
    return plan_of_pairs(graph, pairs_with_views(graph, pairs))


def _fewer(order: Sequence[T], steps: int) -> Iterator[Sequence[T]]:
    """Yield suffixes of the sequence, ever shorter, in about `steps` steps."""
    every = max(1, len(order) // steps)
    for count in range(every, len(order), every):
        yield order[count:]


def _worth(groups: Iterable[CopyGroup]) -> float:
    copied = list(groups)
    return sum(group.saved_bytes for group in copied) / (1 + sum(group.extra_flops for group in copied))
