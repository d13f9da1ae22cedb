"""Choose the storages that one segment keeps within a byte budget, so that recomputing its remaining storages takes the
least work.

A byte price converts bytes to work. Minimum cuts at several byte prices give a solution; the stacks of loops are chosen
by the same method (`search/local_choices/min_loop_cut.py`). The remaining budget is filled greedily with the storages
that avoid the most work. If HiGHS is installed (`xdsl-recompute[plan]`), the integer program of `keep_program.py`
improves the solution.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..min_cut import min_cut
from ..solvers.integer_program import CoverProgram, CoverRows, ProgramLimits, is_installed, solve
from .keep_program import KeepColumns, add_segment_rows, rerunnable_operations
from .segment_problem import SegmentProblem

MAX_PRICES = 24
"""Maximum number of byte prices that are tried. Each price requires a minimum cut and narrows the interval; beyond the
limit, the last set within the budget is used."""
MAX_NODES_ALONE = 2000
"""Node limit of the integer program, beyond which the best solution so far is used. A time limit would make results
irreproducible."""


def smallest_kept(piece: SegmentProblem) -> frozenset[int]:
    """Return the set of storages with the fewest bytes that the segment can keep. It is a minimum cut, so no smaller
    set exists."""
    return _cut_at_price(piece, Fraction(1), bytes_alone=True)


def keep_within(piece: SegmentProblem, most: int) -> frozenset[int] | None:
    """Return a set of storages to keep that takes at most `most` bytes and leaves little recomputation work; None if
    every possible set exceeds this limit."""
    plain = _cut_at_price(piece, Fraction(0))
    if piece.bytes(plain) <= most:
        return plain
    least = smallest_kept(piece)
    if piece.bytes(least) > most:
        return None
    greedy = _fill_budget(piece, _search_prices(piece, most, plain, least), most)
    return _improve_exactly(piece, most, greedy) if is_installed() else greedy


def _search_prices(piece: SegmentProblem, most: int, larger: frozenset[int], smaller: frozenset[int]) -> frozenset[int]:
    """Return a set within the budget that leaves little work. The search starts from a set that exceeds the budget
    (`larger`) and a set within it (`smaller`). Each iteration computes the cut at the byte price at which both sets
    cost the same (Eisner and Severance, 1976), and replaces one of the two sets with this cut."""
    for _ in range(MAX_PRICES):
        saved = piece.bytes(larger) - piece.bytes(smaller)
        extra = _work(piece, smaller) - _work(piece, larger)
        if saved <= 0 or extra <= 0:
            break
        between = _cut_at_price(piece, Fraction(extra, saved))
        size = piece.bytes(between)
        if not piece.bytes(smaller) < size < piece.bytes(larger):
            break
        larger, smaller = (larger, between) if size <= most else (between, smaller)
    return smaller


def _fill_budget(piece: SegmentProblem, kept_storages: frozenset[int], most: int) -> frozenset[int]:
    """Add storages to the kept set until no further storage is within the budget. Each iteration adds the storage that
    avoids the most work."""
    while True:
        least_work, best = _work(piece, kept_storages), None
        for storage in sorted(piece.recomputed_without(kept_storages) - piece.never_kept):
            candidate = piece.read_storages(kept_storages | {storage})
            if piece.bytes(candidate) <= most and (work := _work(piece, candidate)) < least_work:
                least_work, best = work, candidate
        if best is None:
            return kept_storages
        kept_storages = best


def _work(piece: SegmentProblem, kept_storages: frozenset[int]) -> int:
    return piece.work_of(piece.recomputed_without(kept_storages))


def _cut_at_price(piece: SegmentProblem, price: Fraction, bytes_alone: bool = False) -> frozenset[int]:
    """Return the minimum cut at a byte price. `price`: the work that is worth as much as one byte. `bytes_alone`:
    whether to ignore the work."""
    per_byte, unit = price.numerator, price.denominator
    too_much = per_byte * sum(piece.sizes.values()) + unit * sum(piece.work.values()) + 1
    cost = {v: too_much if v in piece.never_kept else per_byte * size for v, size in piece.sizes.items()}
    work = None if bytes_alone else {v: unit * piece.work[piece.makers[v]] for v in piece.sizes}
    if not piece.needed:
        return frozenset()
    return piece.read_storages(min_cut(sorted(piece.needed), piece.operands, cost, work))


def _improve_exactly(piece: SegmentProblem, most: int, start: frozenset[int]) -> frozenset[int]:
    """Improve `start`, a solution within the budget, using the integer program. HiGHS computes in floating point, so
    its answer is checked in exact integers."""
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
    answer = solve(program, start=point, limits=ProgramLimits(nodes=MAX_NODES_ALONE, gap=1e-6))
    if answer.values is None:
        return start
    kept_storages = piece.read_storages(columns.kept(answer.values) - piece.never_kept)
    if not piece.recomputed_without(kept_storages) <= piece.operands.keys() or piece.bytes(kept_storages) > most:
        return start
    return kept_storages if _work(piece, kept_storages) < _work(piece, start) else start
