"""Choose the storages that all segments with budgets keep, by one integer program for HiGHS.

It minimizes the work of the recomputed operations, such that

- each storage that the backward pass reads is kept or recomputed;
- each storage that a recomputed operation reads is kept or recomputed, and kept if it belongs to another segment;
- the kept bytes of each segment are within its budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd

import numpy as np

from ..solvers.integer_program import CoverProgram, CoverRows, ProgramLimits, available, solve
from .segment_problem import SegmentProblem

NODES_TOGETHER = 5000
"""Node limit of the integer program. A time limit would make results irreproducible."""


@dataclass(frozen=True)
class KeptTogether:
    """The storages that each segment keeps; None if no solution was found. `infeasible`: whether it is proved that no
    solution exists."""

    kept: Mapping[str, frozenset[int]] | None
    infeasible: bool


@dataclass
class _ColumnNumbers:
    """The variables of the program: the column of each storage (`keep`) and of each operation (`run`)."""

    keep: dict[int, int] = field(default_factory=dict[int, int])
    run: dict[int, int] = field(default_factory=dict[int, int])

    @classmethod
    def of(cls, pieces: Mapping[str, SegmentProblem]) -> _ColumnNumbers:
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


def keep_together(pieces: Mapping[str, SegmentProblem], most: Mapping[str, int]) -> KeptTogether:
    """Choose the kept storages of all segments together. Without HiGHS no solution is found.

    Args:
        pieces: The problem of each segment.
        most: The budget of each segment in bytes.
    """
    if not available():
        return KeptTogether(None, False)
    columns, rows = _ColumnNumbers.of(pieces), CoverRows()
    costs = np.zeros(len(columns))
    total = max(1, sum(sum(piece.work.values()) for piece in pieces.values()))
    for name, piece in pieces.items():
        for op in {piece.maker[v] for v in piece.needs}:
            costs[columns.run[op]] = 100 * piece.work[op] / total
        _add_segment(rows, columns, piece, most[name])
    answer = solve(CoverProgram(costs, np.zeros(len(columns)), rows), limits=ProgramLimits(nodes=NODES_TOGETHER))
    if answer.values is None:
        return KeptTogether(None, answer.infeasible)
    chosen = {v for v, column in columns.keep.items() if answer.values[column] > 0.5}
    kept = {name: frozenset(chosen & piece.sizes.keys()) - piece.never for name, piece in pieces.items()}
    return KeptTogether(kept if _holds(pieces, most, kept) else None, False)


def _add_segment(rows: CoverRows, columns: _ColumnNumbers, piece: SegmentProblem, most: int) -> None:
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
    """Check the constraints in exact integers, because HiGHS computes in floating point."""
    all_kept = frozenset[int]().union(*kept.values())
    for name, piece in pieces.items():
        again = piece.again(kept[name])
        if not again <= piece.needs.keys() or piece.bytes(kept[name]) > most[name]:
            return False
        if not piece.reads_outside(again) <= all_kept:
            return False
    return True
