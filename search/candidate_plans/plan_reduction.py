"""Derive smaller plans from a plan: drop some of its copies, or replace them with the copies of a cheaper plan.

Copies are dropped by segment or by copy group, in two orders: in the order of the backward pass, and by increasing
reduction of memory per FLOP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ...planning.graph import Graph
from ...planning.pairs import plan_of_pairs
from ...planning.plan import CopyGroup, Plan

FAMILY_SIZE = 12
"""The approximate number of smaller plans that are made from one plan, in each of the two orders. A larger family has a
plan closer to the budget, but a search forecasts more of its plans."""

T = TypeVar("T")


def thin_out(plan: Plan) -> Iterator[Sequence[tuple[frozenset[str], Plan]]]:
    """Yield two sequences of smaller plans, in which fewer and fewer segments are copied. Each plan comes with the
    names of these segments."""
    for names in _segment_sequences(plan):
        yield [(segments, _with_segments(plan, segments)) for segments in names]


def mix(plan: Plan, cheaper: Plan) -> Iterator[Sequence[tuple[frozenset[str], Plan]]]:
    """Yield two sequences of plans that mix `plan` with `cheaper`, a plan with the same segments. Along each sequence,
    more and more segments are copied as in `cheaper`. Each plan comes with the names of the segments that are copied as
    in `plan`."""
    for names in _segment_sequences(plan):
        yield [(segments, _with_others(_with_segments(plan, segments), cheaper, segments)) for segments in names]


def _segment_sequences(plan: Plan) -> Iterator[Sequence[frozenset[str]]]:
    """Yield two sequences of shrinking subsets of the plan's segments, as sets of names."""
    groups = dict[str, list[CopyGroup]]()
    for group in sorted(plan.groups, key=lambda group: group.before):
        groups.setdefault(group.segment, []).append(group)
    names = [name for name in groups if name]
    for order in (names, sorted(names, key=lambda name: _worth(groups[name]))):
        yield [frozenset(suffix) for suffix in _shorter_suffixes(order, FAMILY_SIZE)]


def _with_segments(plan: Plan, names: frozenset[str]) -> Plan:
    return replace(plan, groups=tuple([group for group in plan.groups if not group.segment or group.segment in names]))


def _with_others(plan: Plan, cheaper: Plan, names: frozenset[str]) -> Plan:
    """Add to `plan` the copies that the plan `cheaper` makes for segments not in `names`. Renumber the copies of each
    operation."""
    others = [group for group in cheaper.groups if group.segment and group.segment not in names]
    groups, counts = list[CopyGroup](), Counter[int]()
    for group in sorted((*plan.groups, *others), key=lambda group: group.before):
        counts.update(group.operations)
        groups.append(replace(group, numbers=tuple([counts[op] for op in group.operations])))
    return replace(plan, groups=tuple(groups))


def group_subsets(plan: Plan, steps: int) -> Iterator[Sequence[Sequence[CopyGroup]]]:
    """Yield two sequences of shrinking subsets of the plan's groups. The first sequence drops groups in the order of
    the backward pass, the second one in order of increasing reduction of memory per FLOP."""
    in_turn = sorted(plan.groups, key=lambda group: group.before)
    for order in (in_turn, sorted(in_turn, key=lambda group: _worth([group]))):
        yield list(_shorter_suffixes(order, steps))


def with_groups(graph: Graph, groups: Iterable[CopyGroup]) -> Plan:
    """Return a plan with only these groups. A read of a copy in another group becomes a read of the original."""
    # The solvers are imported here, so that only callers that need them wait for the import.
    from ...planning.solvers.solve_graph import pairs_with_views

    pairs = {(group.before, op) for group in groups for op in group.operations}
    return plan_of_pairs(graph, pairs_with_views(graph, pairs))


def _shorter_suffixes(order: Sequence[T], steps: int) -> Iterator[Sequence[T]]:
    """Yield about `steps` suffixes of the sequence `order`, each shorter than the preceding one."""
    every = max(1, len(order) // steps)
    for count in range(every, len(order), every):
        yield order[count:]


def _worth(groups: Iterable[CopyGroup]) -> float:
    copied = list(groups)
    return sum(group.saved_bytes for group in copied) / (1 + sum(group.extra_flops for group in copied))
