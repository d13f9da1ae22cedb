"""Segment budgets: limits on the bytes that segments save for the backward pass, such as `layer*:30%,head:8MiB`.

The budget, which follows the last colon of an entry, is a number of bytes, a share of the bytes that the segment saves
without recomputation, or `min`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..support.interface import option
from ..support.units import budget_text, parse_budget
from .selection import BadSelection

SegmentBudgets = str | Mapping[str, str | float]
"""Segment budgets as the Python API accepts them: a string, or a mapping from patterns to budgets."""


@dataclass(frozen=True)
class SegmentBudget:
    """The budget of the segments whose names match a shell-style pattern."""

    pattern: str
    text: str

    def limit_bytes(self, plain: int) -> int | None:
        """Return the limit, in bytes, for a segment that saves `plain` bytes without recomputation; None for `min`."""
        return parse_budget(self.text, plain)


def read_budgets(texts: Sequence[str]) -> tuple[SegmentBudget, ...]:
    """Parse segment budgets from comma-separated lists. Raises `BadSelection` for an invalid budget."""
    budgets = [_read(budget) for text in texts for part in text.split(",") if (budget := part.strip())]
    if texts and not budgets:
        raise BadSelection(f"{option('segment-budgets')} is empty; expected entries such as layer*:30%,head:8MiB")
    return tuple(budgets)


def _read(text: str) -> SegmentBudget:
    pattern, colon, budget = (part.strip() for part in text.rpartition(":"))
    if not colon or not pattern or not budget:
        raise BadSelection(
            f"{option('segment-budgets')}: invalid segment budget '{text}': expected PATTERN:LIMIT, such as "
            "'layer*:30%' or 'head:8MiB'"
        )
    try:
        parse_budget(budget, 1)
    except ValueError as error:
        raise BadSelection(f"{option('segment-budgets')}: {pattern}: {error}") from error
    return SegmentBudget(pattern, budget)


def budget_texts(budgets: SegmentBudgets) -> tuple[str, ...]:
    """Convert segment budgets of the Python API, such as `{"layer*": "30%"}`, to the form of the pass option,
    `layer*:30%`.

    Integers are bytes, and other numbers are shares. Raises `BadSelection` for an invalid budget.
    """
    if isinstance(budgets, str):
        texts: tuple[str, ...] = (budgets,)
    else:
        texts = tuple(f"{pattern}:{_text(pattern, budget)}" for pattern, budget in budgets.items())
    read_budgets(texts)
    return texts


def _text(pattern: str, budget: str | float) -> str:
    try:
        return budget_text(budget)
    except ValueError as error:
        raise BadSelection(f"{option('segment-budgets')}: {pattern}: {error}") from error
