"""Choose the storages that a segment keeps within a byte budget, so that recomputing the others takes the least work.

Without HiGHS: minimum cuts at several byte prices, as for the stacks of loops (`analysis/copies/loop_prices.py`); the
remaining budget is filled greedily with the storages that save the most work. With HiGHS (`xdsl-recompute[plan]`): an
integer program with that start solution. It minimises the work of recomputed operations, such that each storage that is
wanted, or read by a recomputed operation, is kept or recomputed, and the kept bytes are within the budget.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import numpy as np

from ..min_cut import min_cut
from ..solvers.integer_program import CoverProgram, CoverRows, available, solve
from .piece import SegmentProblem

PRICES = 24
"""Maximum number of byte prices."""
NODES = 2000
"""Node limit of the integer program; a time limit would make results irreproducible."""


def least_kept(piece: SegmentProblem) -> frozenset[int]:
    """The set of storages with the fewest bytes that can be kept, by a minimum cut; no smaller set exists."""
    return _cut(piece, Fraction(1), bytes_alone=True)


def keep_within(piece: SegmentProblem, most: int) -> frozenset[int] | None:
    """The storages to keep of at most `most` bytes; None if there is no such set."""
    plain = _cut(piece, Fraction(0))
    if piece.bytes(plain) <= most:
        return plain
    least = least_kept(piece)
    if piece.bytes(least) > most:
        return None
    greedy = _fill_budget(piece, _by_prices(piece, most, plain, least), most)
    return _exact(piece, most, greedy) if available() else greedy


def _by_prices(piece: SegmentProblem, most: int, more: frozenset[int], less: frozenset[int]) -> frozenset[int]:
    """Search between two sets, each time at the price at which both cost the same (Eisner and Severance, 1976)."""
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


def _fill_budget(piece: SegmentProblem, kept: frozenset[int], most: int) -> frozenset[int]:
    """Greedily keep further storages that fit, the one that saves the most work first."""
    while True:
        least_work, best = _work(piece, kept), None
        for storage in sorted(piece.again(kept) - piece.never):
            candidate = piece.used(kept | {storage})
            if piece.bytes(candidate) <= most and (work := _work(piece, candidate)) < least_work:
                least_work, best = work, candidate
        if best is None:
            return kept
        kept = best


def _work(piece: SegmentProblem, kept: frozenset[int]) -> int:
    return piece.work_of(piece.again(kept))


def _cut(piece: SegmentProblem, price: Fraction, bytes_alone: bool = False) -> frozenset[int]:
    """The minimum cut at a price. `price`: the work that a byte is worth; with `bytes_alone` work is free."""
    per_byte, unit = price.numerator, price.denominator
    too_much = per_byte * sum(piece.sizes.values()) + unit * sum(piece.work.values()) + 1
    cost = {v: too_much if v in piece.never else per_byte * size for v, size in piece.sizes.items()}
    work = None if bytes_alone else {v: unit * piece.work[piece.maker[v]] for v in piece.sizes}
    return piece.used(min_cut(sorted(piece.needed), piece.needs, cost, work)) if piece.needed else frozenset()


def _exact(piece: SegmentProblem, most: int, start: frozenset[int]) -> frozenset[int]:
    """Solve the integer program. `start`: a solution within the budget. HiGHS's answer is checked with integers."""
    storages = sorted(piece.sizes)
    operations = sorted({piece.maker[v] for v in piece.needs})
    keep = {v: column for column, v in enumerate(storages)}
    run = {op: len(storages) + column for column, op in enumerate(operations)}
    total = max(1, sum(piece.work[op] for op in operations))
    costs = np.zeros(len(storages) + len(operations))
    for op, column in run.items():
        costs[column] = 100 * piece.work[op] / total
    answer = solve(
        CoverProgram(costs, np.zeros(len(costs)), _rows(piece, most, keep, run)),
        start=_point(piece, start, keep, run),
        nodes=NODES,
        gap=1e-6,
    )
    if answer.values is None:
        return start
    kept = piece.used(frozenset(v for v, column in keep.items() if answer.values[column] > 0.5) - piece.never)
    if not piece.again(kept) <= piece.needs.keys() or piece.bytes(kept) > most:
        return start
    return kept if _work(piece, kept) < _work(piece, start) else start


def _rows(piece: SegmentProblem, most: int, keep: dict[int, int], run: dict[int, int]) -> CoverRows:
    rows, unit = CoverRows(), gcd(*piece.sizes.values()) or 1
    rows.at_least(-float(most // unit), [(column, -float(piece.sizes[v] // unit)) for v, column in keep.items()])
    for v in sorted(piece.never):
        rows.at_least(0.0, [(keep[v], -1.0)])

    def available_by(v: int) -> list[tuple[int, float]]:
        made = [(run[piece.maker[v]], 1.0)] if v in piece.needs else []
        return [(keep[v], 1.0), *made]

    for v in sorted(piece.needed):
        rows.at_least(1.0, available_by(v))
    for op in run:
        read = {need for v in piece.needs if piece.maker[v] == op for need in piece.needs[v]}
        for v in sorted(read):
            rows.at_least(0.0, [*available_by(v), (run[op], -1.0)])
    return rows


def _point(piece: SegmentProblem, kept: frozenset[int], keep: dict[int, int], run: dict[int, int]) -> np.ndarray:
    point = np.zeros(len(keep) + len(run))
    point[[keep[v] for v in kept]] = 1.0
    point[[run[piece.maker[v]] for v in piece.again(kept)]] = 1.0
    return point
