"""Budgets for what single segments save for their own gradient: `layer*:30%,head:8MiB`.

The pattern is one for segments, as in `Selection.segments`; of several that match the first one counts. Behind the last
colon stand bytes, a share of what the segment saves as it is, or `min`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from xdsl.ir import Operation

from ...options.segment_budgets import SegmentBudget
from ..step.phases import Phases
from .segments import NoSuchSegment, find_segments, inner_scopes, scope_names

NEAR = 3
"""So many names are told of those that are near to one that does not exist."""


@dataclass(frozen=True)
class Budgeted:
    """An instance of a segment, its operations in program order, and the budget that it is under."""

    name: str
    operations: tuple[Operation, ...]
    budget: SegmentBudget


def budgeted(phases: Phases, budgets: Iterable[SegmentBudget]) -> tuple[list[Budgeted], list[SegmentBudget]]:
    """The segments that are under a budget, and the budgets that none of the function's is under."""
    taken, found, left = set[Operation](), list[Budgeted](), list[SegmentBudget]()
    for budget in budgets:
        members = dict[str, list[Operation]]()
        for op, name in _segments(phases, budget.pattern).items():
            members.setdefault(name, []).append(op)
        if not members:
            left.append(budget)
        for name, operations in members.items():
            if free := tuple(op for op in operations if op not in taken):
                found.append(Budgeted(name, free, budget))
        taken.update(op for operations in members.values() for op in operations)
    return found, left


def _segments(phases: Phases, pattern: str) -> Mapping[Operation, str]:
    try:
        return find_segments(phases, pattern)
    except NoSuchSegment:
        return {}


def why_none(phases: Phases, budget: SegmentBudget) -> str:
    """Why no segment of the function is under the budget."""
    inside = [name for name in inner_scopes(phases, budget.pattern)]
    if inside:
        return (
            f"segment-budgets: '{inside[0]}' is inside of a loop or a branch, which is one operation; "
            'loops="keep(30%)" says how much loops keep for their gradient'
        )
    known = scope_names(phases)
    bare = budget.pattern.strip("*?")
    near = get_close_matches(budget.pattern, [*known, *(one.rpartition("/")[2] for one in known)], NEAR)
    near = list(dict.fromkeys([*near, *(one for one in known if bare and bare.lower() in one.lower())]))[:NEAR]
    if near:
        return f"segment-budgets: no segment matches '{budget.pattern}'; near it are: {', '.join(near)}"
    return f"segment-budgets: {NoSuchSegment(budget.pattern, known)}"
