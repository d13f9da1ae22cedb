"""Budgets for the bytes that individual segments save for their own gradient: `layer*:30%,head:8MiB`.

The pattern selects segments, as in `Selection.segments`; the first matching pattern applies. After the last colon stand
bytes, a share of the bytes that the unchanged segment saves, or `min`.
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
"""Number of similar names in the message about an unknown name."""


@dataclass(frozen=True)
class BudgetedSegment:
    """An instance of a segment, its operations in program order, and its budget."""

    name: str
    operations: tuple[Operation, ...]
    budget: SegmentBudget


def budgeted(phases: Phases, budgets: Iterable[SegmentBudget]) -> tuple[list[BudgetedSegment], list[SegmentBudget]]:
    """The segments that have a budget, and the budgets that match no segment of the function."""
    taken, segments, unmatched = set[Operation](), list[BudgetedSegment](), list[SegmentBudget]()
    for budget in budgets:
        members = dict[str, list[Operation]]()
        for op, name in _segments(phases, budget.pattern).items():
            members.setdefault(name, []).append(op)
        if not members:
            unmatched.append(budget)
        for name, operations in members.items():
            if free := tuple(op for op in operations if op not in taken):
                segments.append(BudgetedSegment(name, free, budget))
        taken.update(op for operations in members.values() for op in operations)
    return segments, unmatched


def _segments(phases: Phases, pattern: str) -> Mapping[Operation, str]:
    try:
        return find_segments(phases, pattern)
    except NoSuchSegment:
        return {}


def why_none(phases: Phases, budget: SegmentBudget) -> str:
    """The reason that the budget matches no segment of the function."""
    inside = [name for name in inner_scopes(phases, budget.pattern)]
    if inside:
        return (
            f"segment-budgets: '{inside[0]}' is inside of a loop or a branch, which is one operation; "
            'loops="keep(30%)" says how much loops keep for their gradient'
        )
    scopes = scope_names(phases)
    bare = budget.pattern.strip("*?")
    near = get_close_matches(budget.pattern, [*scopes, *(scope.rpartition("/")[2] for scope in scopes)], NEAR)
    near = list(dict.fromkeys([*near, *(scope for scope in scopes if bare and bare.lower() in scope.lower())]))[:NEAR]
    if near:
        return f"segment-budgets: no segment matches '{budget.pattern}'; near it are: {', '.join(near)}"
    return f"segment-budgets: {NoSuchSegment(budget.pattern, scopes)}"
