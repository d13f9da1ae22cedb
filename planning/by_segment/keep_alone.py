"""Choose the storages that one segment keeps within a byte budget, so that recomputing the others takes the least work.

Minimum cuts at several byte prices give a solution, as for the stacks of loops (`analysis/copies/loop_cuts.py`); the
remaining budget is filled greedily with the storages that save the most work. HiGHS, if it is installed
(`xdsl-recompute[plan]`), improves it by the integer program of `keep_program.py`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..min_cut import min_cut
from ..solvers.integer_program import CoverProgram, CoverRows, ProgramLimits, available, solve
from .keep_program import KeepColumns, add_segment_rows, rerunnable_operations
from .segment_problem import SegmentProblem

PRICES = 24
"""Maximum number of byte prices."""
NODES_ALONE = 2000
"""Node limit of the integer program. A time limit would make results irreproducible."""


def least_kept(piece: SegmentProblem) -> frozenset[int]:
    """Return the smallest set of storages, in bytes, that the segment can keep. It is a minimum cut, so no smaller set
    exists."""
    return _cut_at_price(piece, Fraction(1), bytes_alone=True)


def keep_within(piece: SegmentProblem, most: int) -> frozenset[int] | None:
    """Return the storages to keep, of at most `most` bytes in total, that leave the least recomputation work found;
    None if there is no such set."""
    plain = _cut_at_price(piece, Fraction(0))
    if piece.bytes(plain) <= most:
        return plain
    least = least_kept(piece)
    if piece.bytes(least) > most:
        return None
    greedy = _fill_budget(piece, _by_prices(piece, most, plain, least), most)
    return _exact(piece, most, greedy) if available() else greedy


def _by_prices(piece: SegmentProblem, most: int, more: frozenset[int], less: frozenset[int]) -> frozenset[int]:
    """Search between a set that exceeds the budget and a set within it. Each step computes the cut at the byte price at
    which both sets cost the same (Eisner and Severance, 1976). Returns the best set found within the budget."""
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
        for storage in sorted(piece.recomputed_without(kept) - piece.never_kept):
            candidate = piece.read_storages(kept | {storage})
            if piece.bytes(candidate) <= most and (work := _work(piece, candidate)) < least_work:
                least_work, best = work, candidate
        if best is None:
            return kept
        kept = best


def _work(piece: SegmentProblem, kept: frozenset[int]) -> int:
    return piece.work_of(piece.recomputed_without(kept))


def _cut_at_price(piece: SegmentProblem, price: Fraction, bytes_alone: bool = False) -> frozenset[int]:
    """Return the minimum cut at a price. `price`: the work that a byte is worth. `bytes_alone`: whether to ignore the
    work."""
    per_byte, unit = price.numerator, price.denominator
    too_much = per_byte * sum(piece.sizes.values()) + unit * sum(piece.work.values()) + 1
    cost = {v: too_much if v in piece.never_kept else per_byte * size for v, size in piece.sizes.items()}
    work = None if bytes_alone else {v: unit * piece.work[piece.makers[v]] for v in piece.sizes}
    if not piece.needed:
        return frozenset()
    return piece.read_storages(min_cut(sorted(piece.needed), piece.operands, cost, work))


def _exact(piece: SegmentProblem, most: int, start: frozenset[int]) -> frozenset[int]:
    """Improve `start`, a solution within the budget, by the integer program. The answer of HiGHS, which computes in
    floating point, is checked in exact integers."""
    columns = KeepColumns.of([piece])
    operations = rerunnable_operations(piece)
    total = max(1, sum(piece.work[op] for op in operations))
    costs = np.zeros(len(columns))
    point = np.zeros(len(columns))
    rows = CoverRows()
    for op in operations:
        costs[columns.run[op]] = 100 * piece.work[op] / total
    add_segment_rows(rows, columns, piece, most)
    point[[columns.keep[v] for v in start]] = 1.0
    point[[columns.run[piece.makers[v]] for v in piece.recomputed_without(start)]] = 1.0
    program = CoverProgram(costs, np.zeros(len(columns)), rows)
    answer = solve(program, start=point, limits=ProgramLimits(nodes=NODES_ALONE, gap=1e-6))
    if answer.values is None:
        return start
    kept = piece.read_storages(columns.kept(answer.values) - piece.never_kept)
    if not piece.recomputed_without(kept) <= piece.operands.keys() or piece.bytes(kept) > most:
        return start
    return kept if _work(piece, kept) < _work(piece, start) else start
