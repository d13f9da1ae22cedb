"""Choose the storages that all segments with budgets keep, with the least recomputation work, using one integer
program.

This program is needed if the segments cannot be planned one after the other (`segment_limits.py`), because each segment
reads storages of other segments. `keep_program.py` defines the rows of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..solvers.integer_program import CoverProgram, CoverRows, ProgramLimits, is_installed, solve
from .keep_program import KeepColumns, add_segment_rows, rerunnable_operations
from .segment_problem import SegmentProblem

MAX_NODES_TOGETHER = 5000
"""Node limit of the integer program, beyond which its best solution so far is used, and nothing is proved. A time limit
would make results irreproducible."""


@dataclass(frozen=True)
class KeptTogether:
    """The outcome of the integer program for all segments.

    Attributes:
        kept: The storages that each segment keeps, by name; None if no solution was found.
        infeasible: Whether it is proved that no solution exists.
    """

    kept: Mapping[str, frozenset[int]] | None
    infeasible: bool


def keep_together(pieces: Mapping[str, SegmentProblem], most: Mapping[str, int]) -> KeptTogether:
    """Choose the kept storages of all segments with one integer program. Without HiGHS, no solution is found.

    Args:
        pieces: The problem of each segment.
        most: The budget of each segment in bytes.
    """
    if not is_installed():
        return KeptTogether(None, False)
    columns = KeepColumns.of(pieces.values())
    rows = CoverRows()
    costs = np.zeros(len(columns))
    total = max(1, sum(sum(piece.work.values()) for piece in pieces.values()))
    for name, piece in pieces.items():
        for op in rerunnable_operations(piece):
            costs[columns.run[op]] = 100 * piece.work[op] / total
        add_segment_rows(rows, columns, piece, most[name])
    answer = solve(CoverProgram(costs, np.zeros(len(columns)), rows), limits=ProgramLimits(nodes=MAX_NODES_TOGETHER))
    if answer.values is None:
        return KeptTogether(None, answer.infeasible)
    chosen = columns.kept(answer.values)
    kept_storages = {name: frozenset(chosen & piece.sizes.keys()) - piece.never_kept for name, piece in pieces.items()}
    return KeptTogether(kept_storages if _is_valid(pieces, most, kept_storages) else None, False)


def _is_valid(
    pieces: Mapping[str, SegmentProblem], most: Mapping[str, int], kept_storages: Mapping[str, frozenset[int]]
) -> bool:
    """Return whether the kept storages satisfy all constraints. The check uses exact integers, because HiGHS computes
    in floating point."""
    all_kept = frozenset[int]().union(*kept_storages.values())
    for name, piece in pieces.items():
        recomputed = piece.recomputed_without(kept_storages[name])
        if not recomputed <= piece.operands.keys() or piece.bytes(kept_storages[name]) > most[name]:
            return False
        if not piece.reads_outside(recomputed) <= all_kept:
            return False
    return True
