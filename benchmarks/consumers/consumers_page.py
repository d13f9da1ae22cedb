"""Tables of docs/measured/consumers.md, with one row for each step over all sets of options."""

# pyright: basic

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from recompute.benchmarks.consumers.step_checks import REFUSED, UNCHANGED, CheckRow
from recompute.benchmarks.harness.markdown import markdown_table

HEAD = ("step", "outcome", "proof", "numpy", "XLA", "ours", "`jax.checkpoint`")


def tables(rows: Sequence[CheckRow]) -> dict[str, str]:
    """Return the tables, by the names of their markers on the page."""
    rows_by_step = [list(step_rows) for _, step_rows in groupby(rows, lambda row: row.step)]
    first_rows = [step_rows[0] for step_rows in rows_by_step]
    reasons = [(row.step, row.outcome, _short(row.reason)) for row in first_rows if row.outcome in (REFUSED, UNCHANGED)]
    return {
        "consumers": markdown_table(HEAD, map(_cells, rows_by_step)),
        "reasons": markdown_table(("step", "outcome", "reason"), reasons),
    }


def _cells(rows: Sequence[CheckRow]) -> list[str]:
    """Return the cells of one step over all sets of options: counts of outcomes, and the largest distance."""
    outcomes = Counter(row.outcome for row in rows)
    outcome = ", ".join(f"{count} {name}" for name, count in outcomes.items()) if len(outcomes) > 1 else rows[0].outcome
    shared = [_all(row.proof for row in rows), _all(row.numpy for row in rows), _all(row.xla for row in rows)]
    return [rows[0].step, outcome, *shared, _farthest(row.ours for row in rows), rows[0].theirs]


def _all(cells: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(cells))


def _farthest(distances: Iterable[str]) -> str:
    return max(distances, key=lambda distance: float(distance.split(" / ")[0].replace("-", "-1")))


def _short(reason: str) -> str:
    """Return the first remark, or the message of an error without its position."""
    return reason.partition("error: ")[2] or reason.split("; ")[0]
