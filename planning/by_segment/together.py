"""All segments with budgets in one integer program for HiGHS, if planning them one after the other fails.

Minimise the work of recomputed operations, such that each wanted storage is kept or recomputed; each storage of its own
segment that a recomputed operation reads is kept or recomputed, and each of another segment with a budget is kept; and
the kept bytes of each segment are within its budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd

import numpy as np

from ..solvers.integer_program import CoverProgram, CoverRows, available, solve
from .piece import SegmentProblem

NODES = 5000
"""Node limit of the integer program; a time limit would make results irreproducible."""


@dataclass(frozen=True)
class Together:
    """The storages that each segment keeps; None if no solution was found. `infeasible`: proved that there is none."""

    kept: Mapping[str, frozenset[int]] | None
    infeasible: bool


@dataclass
class _Columns:
    """The variables: the column of each storage (`keep`) and of each operation (`run`)."""

    keep: dict[int, int] = field(default_factory=dict[int, int])
    run: dict[int, int] = field(default_factory=dict[int, int])

    @classmethod
    def of(cls, pieces: Mapping[str, SegmentProblem]) -> _Columns:
        columns = cls()
        for piece in pieces.values():
            for v in sorted(piece.sizes):
                columns.keep[v] = len(columns.keep)
        for piece in pieces.values():
            for op in sorted({piece.maker[v] for v in piece.needs}):
                columns.run[op] = len(columns.keep) + len(columns.run)
        return columns

    def __len__(self) -> int:
        return len(self.keep) + len(self.run)


def keep_together(pieces: Mapping[str, SegmentProblem], most: Mapping[str, int]) -> Together:
    """Plan all segments together. `most`: the budget of each segment, in bytes. Finds nothing without HiGHS."""
    if not available():
        return Together(None, False)
    columns, rows = _Columns.of(pieces), CoverRows()
    costs = np.zeros(len(columns))
    total = max(1, sum(sum(piece.work.values()) for piece in pieces.values()))
    for name, piece in pieces.items():
        for op in {piece.maker[v] for v in piece.needs}:
            costs[columns.run[op]] = 100 * piece.work[op] / total
        _add(rows, columns, piece, most[name])
    answer = solve(CoverProgram(costs, np.zeros(len(columns)), rows), nodes=NODES, gap=1e-4)
    if answer.values is None:
        return Together(None, answer.infeasible)
    chosen = {v for v, column in columns.keep.items() if answer.values[column] > 0.5}
    kept = {name: frozenset(chosen & piece.sizes.keys()) - piece.never for name, piece in pieces.items()}
    return Together(kept if _holds(pieces, most, kept) else None, False)


def _add(rows: CoverRows, columns: _Columns, piece: SegmentProblem, most: int) -> None:
    unit = gcd(*piece.sizes.values()) or 1
    rows.at_least(-float(most // unit), [(columns.keep[v], -float(size // unit)) for v, size in piece.sizes.items()])

    def available_by(v: int) -> list[tuple[int, float]]:
        made = [(columns.run[piece.maker[v]], 1.0)] if v in piece.needs else []
        return [(columns.keep[v], 1.0), *made]

    for v in sorted(piece.never):
        rows.at_least(0.0, [(columns.keep[v], -1.0)])
    for v in sorted(piece.needed):
        rows.at_least(1.0, available_by(v))
    for op in sorted({piece.maker[v] for v in piece.needs}):
        for v in sorted({need for made, needs in piece.needs.items() if piece.maker[made] == op for need in needs}):
            rows.at_least(0.0, [*available_by(v), (columns.run[op], -1.0)])
        for v in sorted(piece.outside[op]):
            rows.at_least(0.0, [(columns.keep[v], 1.0), (columns.run[op], -1.0)])


def _holds(pieces: Mapping[str, SegmentProblem], most: Mapping[str, int], kept: Mapping[str, frozenset[int]]) -> bool:
    """Check the constraints with integers, since HiGHS computes with doubles."""
    all_kept = frozenset[int]().union(*kept.values())
    for name, piece in pieces.items():
        again = piece.again(kept[name])
        if not again <= piece.needs.keys() or piece.bytes(kept[name]) > most[name]:
            return False
        if not piece.reads_outside(again) <= all_kept:
            return False
    return True
