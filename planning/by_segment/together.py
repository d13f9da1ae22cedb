"""All segments under budgets in one integer program, for HiGHS: where settling them one after the other finds nothing.

Minimise the work of what runs again. Each storage that is wanted is kept or made again; who runs again what reads a
storage of its own segment finds it kept or made again, and one of another segment under a budget finds it kept; what a
segment keeps is within its budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd

import numpy as np

from ..solvers.integer_program import Program, Rows, available, solve
from .piece import Piece

NODES = 5000
"""Of the branching, so that the result is the same every time."""


@dataclass(frozen=True)
class Together:
    """What each segment keeps; None where nothing was found. `infeasible`: proved that there is nothing."""

    kept: Mapping[str, frozenset[int]] | None
    infeasible: bool


@dataclass
class _Columns:
    keep: dict[int, int] = field(default_factory=dict[int, int])
    run: dict[int, int] = field(default_factory=dict[int, int])

    @classmethod
    def of(cls, pieces: Mapping[str, Piece]) -> _Columns:
        found = cls()
        for piece in pieces.values():
            for v in sorted(piece.sizes):
                found.keep[v] = len(found.keep)
        for piece in pieces.values():
            for op in sorted({piece.maker[v] for v in piece.needs}):
                found.run[op] = len(found.keep) + len(found.run)
        return found

    def __len__(self) -> int:
        return len(self.keep) + len(self.run)


def keep_together(pieces: Mapping[str, Piece], most: Mapping[str, int]) -> Together:
    """`most`: bytes for each segment. Nothing is found without HiGHS."""
    if not available():
        return Together(None, False)
    columns, rows = _Columns.of(pieces), Rows()
    costs = np.zeros(len(columns))
    total = max(1, sum(sum(piece.work.values()) for piece in pieces.values()))
    for name, piece in pieces.items():
        for op in {piece.maker[v] for v in piece.needs}:
            costs[columns.run[op]] = 100 * piece.work[op] / total
        _add(rows, columns, piece, most[name])
    answer = solve(Program(costs, np.zeros(len(columns)), rows), nodes=NODES, gap=1e-4)
    if answer.values is None:
        return Together(None, answer.infeasible)
    chosen = {v for v, at in columns.keep.items() if answer.values[at] > 0.5}
    kept = {name: frozenset(chosen & piece.sizes.keys()) - piece.never for name, piece in pieces.items()}
    return Together(kept if _holds(pieces, most, kept) else None, False)


def _add(rows: Rows, columns: _Columns, piece: Piece, most: int) -> None:
    unit = gcd(*piece.sizes.values()) or 1
    rows.at_least(-float(most // unit), [(columns.keep[v], -float(size // unit)) for v, size in piece.sizes.items()])

    def there(v: int) -> list[tuple[int, float]]:
        made = [(columns.run[piece.maker[v]], 1.0)] if v in piece.needs else []
        return [(columns.keep[v], 1.0), *made]

    for v in sorted(piece.never):
        rows.at_least(0.0, [(columns.keep[v], -1.0)])
    for v in sorted(piece.wanted):
        rows.at_least(1.0, there(v))
    for op in sorted({piece.maker[v] for v in piece.needs}):
        for v in sorted({need for one, needs in piece.needs.items() if piece.maker[one] == op for need in needs}):
            rows.at_least(0.0, [*there(v), (columns.run[op], -1.0)])
        for v in sorted(piece.outside[op]):
            rows.at_least(0.0, [(columns.keep[v], 1.0), (columns.run[op], -1.0)])


def _holds(pieces: Mapping[str, Piece], most: Mapping[str, int], kept: Mapping[str, frozenset[int]]) -> bool:
    """In whole numbers: HiGHS computes in doubles."""
    every = frozenset[int]().union(*kept.values())
    for name, piece in pieces.items():
        again = piece.again(kept[name])
        if not again <= piece.needs.keys() or piece.bytes(kept[name]) > most[name]:
            return False
        if not piece.reads_outside(again) <= every:
            return False
    return True
