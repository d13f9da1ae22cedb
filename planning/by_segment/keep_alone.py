"""Choose the storages that one segment keeps within a byte budget, so that recomputing the others takes the least work.

Minimum cuts at several byte prices give a solution, as for the stacks of loops (`analysis/copies/loop_cuts.py`); the
remaining budget is filled greedily with the storages that save the most work. HiGHS, if it is installed
(`xdsl-recompute[plan]`), improves it by an integer program: minimize the work of the recomputed operations, such that
each storage that the backward pass or a recomputed operation reads is kept or recomputed, and the kept bytes are within
the budget.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import numpy as np

from ..min_cut import min_cut
from ..solvers.integer_program import CoverProgram, CoverRows, ProgramLimits, available, solve
from .segment_problem import SegmentProblem

PRICES = 24
"""Maximum number of byte prices."""
NODES_ALONE = 2000
"""Node limit of the integer program. A time limit would make results irreproducible."""


def least_kept(piece: SegmentProblem) -> frozenset[int]:
    """Return the set of storages with the fewest bytes that can be kept, by a minimum cut; no smaller set exists."""
    return _cut_at_price(piece, Fraction(1), bytes_alone=True)


def keep_within(piece: SegmentProblem, most: int) -> frozenset[int] | None:
    """Return the storages to keep, of at most `most` bytes, at the least work found; None if there is no such set."""
    plain = _cut_at_price(piece, Fraction(0))
    if piece.bytes(plain) <= most:
        return plain
    least = least_kept(piece)
    if piece.bytes(least) > most:
        return None
    greedy = _fill_budget(piece, _by_prices(piece, most, plain, least), most)
    return _exact(piece, most, greedy) if available() else greedy


def _by_prices(piece: SegmentProblem, most: int, more: frozenset[int], less: frozenset[int]) -> frozenset[int]:
    """Search between a set above the budget and one within it, each time at the byte price at which both cost the same
    (Eisner and Severance, 1976). Returns the best set found within the budget."""
    for _ in range(PRICES):
        saved = piece.bytes(more) - piece.bytes(less)
        extra = _work(piece, less) - _work(piece, more)
        if saved <= 0 or extra <= 0:
            break
        between = _cut_at_price(piece, Fraction(extra, saved))
        size = piece.bytes(between)
        if not piece.bytes(less) < size < piece.bytes(more):
            break
        more, less = (more, between) if size <= most else (between, less)
    return less


def _fill_budget(piece: SegmentProblem, kept: frozenset[int], most: int) -> frozenset[int]:
    """Keep further storages greedily while they fit, in order of decreasing saved work."""
    while True:
        least_work, best = _work(piece, kept), None
        for storage in sorted(piece.again(kept) - piece.never):
            candidate = piece.read_storages(kept | {storage})
            if piece.bytes(candidate) <= most and (work := _work(piece, candidate)) < least_work:
                least_work, best = work, candidate
        if best is None:
            return kept
        kept = best


def _work(piece: SegmentProblem, kept: frozenset[int]) -> int:
    return piece.work_of(piece.again(kept))


def _cut_at_price(piece: SegmentProblem, price: Fraction, bytes_alone: bool = False) -> frozenset[int]:
    """Return the minimum cut at a price. `price`: the work that a byte is worth. `bytes_alone`: ignore the work."""
    per_byte, unit = price.numerator, price.denominator
    too_much = per_byte * sum(piece.sizes.values()) + unit * sum(piece.work.values()) + 1
    cost = {v: too_much if v in piece.never else per_byte * size for v, size in piece.sizes.items()}
    work = None if bytes_alone else {v: unit * piece.work[piece.maker[v]] for v in piece.sizes}
    return piece.read_storages(min_cut(sorted(piece.needed), piece.needs, cost, work)) if piece.needed else frozenset()


def _exact(piece: SegmentProblem, most: int, start: frozenset[int]) -> frozenset[int]:
    """Improve `start`, a solution within the budget, by the integer program. The answer of HiGHS, which computes in
    floating point, is checked in exact integers."""
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
        limits=ProgramLimits(nodes=NODES_ALONE, gap=1e-6),
    )
    if answer.values is None:
        return start
    kept = piece.read_storages(frozenset(v for v, column in keep.items() if answer.values[column] > 0.5) - piece.never)
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
