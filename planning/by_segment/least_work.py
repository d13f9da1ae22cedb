"""Which storages a segment keeps, of so many bytes at most, so that making the others again takes the least work.

Without HiGHS: minimum cuts for prices of a byte, as for the stacks of loops (`analysis/copies/loop_prices.py`), and of
what is left of the budget that is kept besides which spares the most work. With HiGHS (`xdsl-recompute[plan]`) an
integer program, which begins with that: minimise the work of what is made again, where each storage that is wanted, or
read by what is made again, is kept or made again, and what is kept takes no more than the budget.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import numpy as np

from ..min_cut import min_cut
from ..solvers.integer_program import Program, Rows, available, solve
from .piece import Piece

PRICES = 24
"""So many prices are tried."""
NODES = 2000
"""Of the integer program, so that the result is the same every time."""


def least_kept(piece: Piece) -> frozenset[int]:
    """The fewest bytes that can be kept, proved: a minimum cut."""
    return _cut(piece, Fraction(1), bytes_alone=True)


def keep_within(piece: Piece, most: int) -> frozenset[int] | None:
    """What is kept of at most so many bytes; None where none is so small."""
    plain = _cut(piece, Fraction(0))
    if piece.bytes(plain) <= most:
        return plain
    least = least_kept(piece)
    if piece.bytes(least) > most:
        return None
    found = _polished(piece, _by_prices(piece, most, plain, least), most)
    return _exact(piece, most, found) if available() else found


def _by_prices(piece: Piece, most: int, more: frozenset[int], less: frozenset[int]) -> frozenset[int]:
    """Between two sets, the price at which two that are known cost the same (Eisner and Severance, 1976)."""
    for _ in range(PRICES):
        saved = piece.bytes(more) - piece.bytes(less)
        extra = _work(piece, less) - _work(piece, more)
        if saved <= 0 or extra <= 0:
            break
        between = _cut(piece, Fraction(extra, saved))
        size = piece.bytes(between)
        if not piece.bytes(less) < size < piece.bytes(more):
            break
        more, less = (more, between) if size <= most else (between, less)
    return less


def _polished(piece: Piece, kept: frozenset[int], most: int) -> frozenset[int]:
    """Keep besides, one after the other, what fits and spares most."""
    while True:
        work = _work(piece, kept)
        best, found = work, None
        for one in sorted(piece.again(kept) - piece.never):
            tried = piece.used(kept | {one})
            if piece.bytes(tried) <= most and (left := _work(piece, tried)) < best:
                best, found = left, tried
        if found is None:
            return kept
        kept = found


def _work(piece: Piece, kept: frozenset[int]) -> int:
    return piece.work_of(piece.again(kept))


def _cut(piece: Piece, price: Fraction, bytes_alone: bool = False) -> frozenset[int]:
    """`price`: work that a byte is worth; with `bytes_alone` work is nothing."""
    per_byte, unit = price.numerator, price.denominator
    too_much = per_byte * sum(piece.sizes.values()) + unit * sum(piece.work.values()) + 1
    cost = {v: too_much if v in piece.never else per_byte * size for v, size in piece.sizes.items()}
    work = None if bytes_alone else {v: unit * piece.work[piece.maker[v]] for v in piece.sizes}
    return piece.used(min_cut(sorted(piece.wanted), piece.needs, cost, work)) if piece.wanted else frozenset()


def _exact(piece: Piece, most: int, start: frozenset[int]) -> frozenset[int]:
    """`start`: kept, within the budget. What HiGHS says is checked in whole numbers."""
    storages = sorted(piece.sizes)
    operations = sorted({piece.maker[v] for v in piece.needs})
    keep = {v: at for at, v in enumerate(storages)}
    run = {op: len(storages) + at for at, op in enumerate(operations)}
    total = max(1, sum(piece.work[op] for op in operations))
    costs = np.zeros(len(storages) + len(operations))
    for op, at in run.items():
        costs[at] = 100 * piece.work[op] / total
    answer = solve(
        Program(costs, np.zeros(len(costs)), _rows(piece, most, keep, run)),
        start=_point(piece, start, keep, run),
        nodes=NODES,
        gap=1e-6,
    )
    if answer.values is None:
        return start
    found = piece.used(frozenset(v for v, at in keep.items() if answer.values[at] > 0.5) - piece.never)
    if not piece.again(found) <= piece.needs.keys() or piece.bytes(found) > most:
        return start
    return found if _work(piece, found) < _work(piece, start) else start


def _rows(piece: Piece, most: int, keep: dict[int, int], run: dict[int, int]) -> Rows:
    rows, unit = Rows(), gcd(*piece.sizes.values()) or 1
    rows.at_least(-float(most // unit), [(at, -float(piece.sizes[v] // unit)) for v, at in keep.items()])
    for v in sorted(piece.never):
        rows.at_least(0.0, [(keep[v], -1.0)])

    def there(v: int) -> list[tuple[int, float]]:
        made = [(run[piece.maker[v]], 1.0)] if v in piece.needs else []
        return [(keep[v], 1.0), *made]

    for v in sorted(piece.wanted):
        rows.at_least(1.0, there(v))
    for op in run:
        read = {need for v in piece.needs if piece.maker[v] == op for need in piece.needs[v]}
        for v in sorted(read):
            rows.at_least(0.0, [*there(v), (run[op], -1.0)])
    return rows


def _point(piece: Piece, kept: frozenset[int], keep: dict[int, int], run: dict[int, int]) -> np.ndarray:
    point = np.zeros(len(keep) + len(run))
    point[[keep[v] for v in kept]] = 1.0
    point[[run[piece.maker[v]] for v in piece.again(kept)]] = 1.0
    return point
