"""A plan with fewer and fewer of its copies: what lies between it and nothing, for less work and more bytes.

Those go first whose turn comes first in the backward pass, or that free least for their work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ...planning.graph import Graph
from ...planning.pairs import plan_of_pairs
from ...planning.plan import CopyGroup, Plan

T = TypeVar("T")
STEPS = 12
"""So many plans are made of one in either order, about."""


def thinned_out(plan: Plan) -> Iterator[tuple[frozenset[str], Plan]]:
    """Segment by segment, with the names of those that are left."""
    groups = dict[str, list[CopyGroup]]()
    for group in sorted(plan.groups, key=lambda one: one.before):
        groups.setdefault(group.segment, []).append(group)
    names = [name for name in groups if name]
    for order in (names, sorted(names, key=lambda name: _worth(groups[name]))):
        for kept in _fewer(order, STEPS):
            left = frozenset(kept)
            groups_left = tuple([one for one in plan.groups if not one.segment or one.segment in left])
            yield left, replace(plan, groups=groups_left)


def with_fewer_groups(graph: Graph, plan: Plan, steps: int) -> Iterator[tuple[int, Plan]]:
    """Place by place, with how many are left. What a copy read of one that is left out it reads of the original."""
    # The solvers bring numba along, where it is installed: only who asks waits for it.
    from ...planning.solvers.of_graph import with_views

    in_turn = sorted(plan.groups, key=lambda one: one.before)
    for order in (in_turn, sorted(in_turn, key=lambda one: _worth([one]))):
        for left in _fewer(order, steps):
            pairs = {(group.before, op) for group in left for op in group.operations}
            yield len(left), plan_of_pairs(graph, with_views(graph, pairs))


def _fewer(order: Sequence[T], steps: int) -> Iterator[Sequence[T]]:
    """Without the first ones, in about so many steps."""
    every = max(1, len(order) // steps)
    for count in range(every, len(order), every):
        yield order[count:]


def _worth(groups: Iterable[CopyGroup]) -> float:
    found = list(groups)
    return sum(one.saved_bytes for one in found) / (1 + sum(one.extra_flops for one in found))
