"""Match segment budgets, such as `layer*:30%,head:8MiB`, with the segments of a step.

A budget limits the bytes that a segment saves for its own gradient (`options/segment_budgets.py`). Its pattern selects
segments in the same way as `Selection.segments`; if several budgets match, the first one applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.ir import Operation

from ...options.segment_budgets import SegmentBudget
from ...options.selection import BadSelection
from ...support.interface import option
from ..step.phases import Phases
from .segments import NoSuchSegment, find_segments, inner_scopes, scope_names


@dataclass(frozen=True)
class BudgetedSegment:
    """A segment instance with its operations in program order, and its budget."""

    name: str
    operations: tuple[Operation, ...]
    budget: SegmentBudget


def budgeted_segments(
    phases: Phases, budgets: Iterable[SegmentBudget]
) -> tuple[list[BudgetedSegment], list[SegmentBudget]]:
    """Return the segments that have a budget, and the budgets that match no segment of the step."""
    matched_operations = set[Operation]()
    segments = list[BudgetedSegment]()
    unmatched = list[SegmentBudget]()
    for budget in budgets:
        members = dict[str, list[Operation]]()
        for op, name in _segments(phases, budget.pattern).items():
            members.setdefault(name, []).append(op)
        if not members:
            unmatched.append(budget)
        for name, operations in members.items():
            if free := tuple(op for op in operations if op not in matched_operations):
                segments.append(BudgetedSegment(name, free, budget))
        matched_operations.update(op for operations in members.values() for op in operations)
    return segments, unmatched


def _segments(phases: Phases, pattern: str) -> Mapping[Operation, str]:
    try:
        return find_segments(phases, pattern)
    except NoSuchSegment:
        return {}


def unmatched_error(phases: Phases, budget: SegmentBudget) -> BadSelection:
    """Return the error for a budget that matches no segment of the step."""
    inside = inner_scopes(phases, budget.pattern)
    if inside:
        return BadSelection(
            f"{option('segment-budgets')}: '{inside[0]}' is inside a loop or a branch, which counts as a single "
            'operation; to limit the bytes that loops keep for their gradient, use loops="keep(30%)"'
        )
    return NoSuchSegment(budget.pattern, scope_names(phases), option("segment-budgets"))
