"""The integer program, for HiGHS, that chooses the storages that segments keep.

For each storage v of a segment, keep[v] = 1 if it is kept. For each operation i that may be rerun, run[i] = 1 if it is
rerun. The rows of a segment require that

- the kept bytes are within its budget;
- storages that must be recomputed because of a mark are not kept;
- each storage that the backward pass reads is kept or recomputed;
- each storage that a recomputed operation reads is kept or recomputed, and kept if it belongs to another segment.

`keep_alone.py` solves the program for one segment, and `keep_together.py` for all segments.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import gcd

from ..solvers.integer_program import CoverRows, Doubles
from .segment_problem import SegmentProblem


@dataclass
class KeepColumns:
    """The columns of the program.

    Attributes:
        keep: The column of each storage.
        run: The column of each operation.
    """

    keep: dict[int, int] = field(default_factory=dict[int, int])
    run: dict[int, int] = field(default_factory=dict[int, int])

    @classmethod
    def of(cls, pieces: Collection[SegmentProblem]) -> KeepColumns:
        """Assign the columns for the problems of these segments: first one column for each storage, then one for each
        operation."""
        columns = cls()
        for piece in pieces:
            for v in sorted(piece.sizes):
                columns.keep[v] = len(columns.keep)
        for piece in pieces:
            for op in rerunnable_operations(piece):
                columns.run[op] = len(columns)
        return columns

    def __len__(self) -> int:
        return len(self.keep) + len(self.run)

    def kept(self, values: Doubles) -> frozenset[int]:
        """Return the storages that a solution keeps. `values`: the value of each column."""
        return frozenset(v for v, column in self.keep.items() if values[column] > 0.5)


def rerunnable_operations(piece: SegmentProblem) -> list[int]:
    """Return the operations of a segment that may be rerun, in program order."""
    return sorted({piece.makers[v] for v in piece.operands})


def add_segment_rows(rows: CoverRows, columns: KeepColumns, piece: SegmentProblem, budget: int) -> None:
    """Add the rows of a segment. Storages of other segments that have no columns are ignored.

    Args:
        rows: The rows of the program. The rows of the segment are appended.
        columns: The columns of the program.
        piece: The problem of the segment.
        budget: The budget of the segment in bytes.
    """
    unit = gcd(*piece.sizes.values()) or 1
    rows.add_row(-float(budget // unit), [(columns.keep[v], -float(size // unit)) for v, size in piece.sizes.items()])

    def kept_or_recomputed(v: int) -> list[tuple[int, float]]:
        recomputed = [(columns.run[piece.makers[v]], 1.0)] if v in piece.operands else []
        return [(columns.keep[v], 1.0), *recomputed]

    for v in sorted(piece.never_kept):
        rows.add_row(0.0, [(columns.keep[v], -1.0)])
    for v in sorted(piece.needed):
        rows.add_row(1.0, kept_or_recomputed(v))
    for op in rerunnable_operations(piece):
        operands = {need for storage, needs in piece.operands.items() if piece.makers[storage] == op for need in needs}
        for v in sorted(operands):
            rows.add_row(0.0, [*kept_or_recomputed(v), (columns.run[op], -1.0)])
        for v in sorted(piece.operands_outside[op] & columns.keep.keys()):
            rows.add_row(0.0, [(columns.keep[v], 1.0), (columns.run[op], -1.0)])
