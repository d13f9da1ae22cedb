"""Plan segments that have byte budgets: each segment alone, then all together where that fails.

Choose the storages that a segment keeps within a byte budget, so that recomputing the others takes the least work.

Without HiGHS: minimum cuts at several byte prices, as for the stacks of loops (`analysis/copies/loop_cuts.py`); the
remaining budget is filled greedily with the storages that save the most work. With HiGHS (`xdsl-recompute[plan]`): an
integer program with that start solution. It minimises the work of recomputed operations, such that each storage that is
wanted, or read by a recomputed operation, is kept or recomputed, and the kept bytes are within the budget.

All segments with budgets in one integer program for HiGHS, if planning them one after the other fails.

Minimise the work of recomputed operations, such that each wanted storage is kept or recomputed; each storage of its own
segment that a recomputed operation reads is kept or recomputed, and each of another segment with a budget is kept; and
the kept bytes of each segment are within its budget.

Choose the saved storages of all segments under byte budgets, at the least recomputation work.

Segments are planned one after the other, the last of the step first. A recomputed operation may read a storage of
another segment, which must then keep it within its own budget. If it cannot, the storage is barred: no other segment
may recompute from it. Planning repeats until all budgets hold. If it fails, one integer program plans all segments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import gcd

import numpy as np

from ..graph import Graph
from ..min_cut import min_cut
from ..solvers.integer_program import CoverProgram, CoverRows, ProgramLimits, available, solve
from .segment_problem import Restrictions, SegmentProblem, SegmentRules, bytes_of, saved_storages, segment_problem

PRICES = 24
"""Maximum number of byte prices."""
NODES_ALONE = 2000
"""Node limit of the integer program; a time limit would make results irreproducible."""


def least_kept(piece: SegmentProblem) -> frozenset[int]:
    """Return the set of storages with the fewest bytes that can be kept, by a minimum cut; no smaller set exists."""
    return _cut(piece, Fraction(1), bytes_alone=True)


def keep_within(piece: SegmentProblem, most: int) -> frozenset[int] | None:
    """Return the storages to keep of at most `most` bytes; None if there is no such set."""
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
    """Keep further storages greedily while they fit, the one that saves the most work first."""
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
    """Return the minimum cut at a price. `price`: the work that a byte is worth; with `bytes_alone` work is free."""
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
        limits=ProgramLimits(nodes=NODES_ALONE, gap=1e-6),
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


NODES_TOGETHER = 5000
"""Node limit of the integer program; a time limit would make results irreproducible."""


@dataclass(frozen=True)
class Together:
    """The storages that each segment keeps; None if no solution was found. `infeasible`: proved that there is none."""

    kept: Mapping[str, frozenset[int]] | None
    infeasible: bool


@dataclass
class _ColumnNumbers:
    """The variables: the column of each storage (`keep`) and of each operation (`run`)."""

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


def keep_together(pieces: Mapping[str, SegmentProblem], most: Mapping[str, int]) -> Together:
    """Plan all segments together. `most`: the budget of each segment, in bytes. Finds nothing without HiGHS."""
    if not available():
        return Together(None, False)
    columns, rows = _ColumnNumbers.of(pieces), CoverRows()
    costs = np.zeros(len(columns))
    total = max(1, sum(sum(piece.work.values()) for piece in pieces.values()))
    for name, piece in pieces.items():
        for op in {piece.maker[v] for v in piece.needs}:
            costs[columns.run[op]] = 100 * piece.work[op] / total
        _add(rows, columns, piece, most[name])
    answer = solve(CoverProgram(costs, np.zeros(len(columns)), rows), limits=ProgramLimits(nodes=NODES_TOGETHER))
    if answer.values is None:
        return Together(None, answer.infeasible)
    chosen = {v for v, column in columns.keep.items() if answer.values[column] > 0.5}
    kept = {name: frozenset(chosen & piece.sizes.keys()) - piece.never for name, piece in pieces.items()}
    return Together(kept if _holds(pieces, most, kept) else None, False)


def _add(rows: CoverRows, columns: _ColumnNumbers, piece: SegmentProblem, most: int) -> None:
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


@dataclass(frozen=True)
class Segment:
    """The operations of a segment, all in the forward pass, and the bytes that it may save; None for the minimum."""

    operations: frozenset[int]
    most: int | None


@dataclass(frozen=True)
class SegmentPlan:
    """The plan of one segment.

    kept: the storages that it keeps. again: the storages that are recomputed.
    bytes: saved bytes under the plan. plain: saved bytes without recomputation. most: the budget in bytes.
    """

    kept: frozenset[int]
    again: frozenset[int]
    bytes: int
    plain: int
    most: int

    @property
    def is_nothing(self) -> bool:
        return not self.again


@dataclass(frozen=True)
class SegmentInfeasible:
    """A segment that cannot keep its budget `most`.

    least: bytes that it saves at least. proved: this holds for any plan of the other segments.
    holding: the storages that make up these bytes, with the reason for each.
    together: proved that the segments cannot keep all budgets at the same time.
    """

    segment: str
    most: int
    least: int
    proved: bool
    holding: tuple[tuple[int, str], ...]
    together: bool = False


@dataclass
class StorageRestrictions:
    """Restrictions on storages, accumulated while plans are retried.

    stays: storages that turned out not to be recomputable, with the reason. again: storages that must be recomputed.
    read: storages that are saved in any case, since other segments read them.
    """

    stays: dict[int, str] = field(default_factory=dict[int, str])
    again: frozenset[int] = frozenset()
    read: set[int] = field(default_factory=set[int])


def plan_segments_within(
    graph: Graph,
    segments: Mapping[str, Segment],
    once: Collection[int],
    outputs: bool,
    accumulated: StorageRestrictions,
) -> Mapping[str, SegmentPlan] | SegmentInfeasible:
    """Plan all segments.

    Args:
        once: operations that must not run twice.
        outputs: whether outputs of a segment may be recomputed too.
        accumulated: restrictions on storages.
    """
    named = {v for segment in segments.values() for op in segment.operations for v in graph.makes[op]}
    rules = SegmentRules(frozenset(once), outputs, frozenset(named))
    order = sorted(segments, key=lambda name: -max(segments[name].operations))
    barred = set[int]()
    while True:
        outcome = _plan_once(graph, segments, order, rules, accumulated, barred)
        if isinstance(outcome, SegmentInfeasible) and not outcome.proved:
            return _plan_together(graph, segments, rules, accumulated, outcome)
        if outcome is not None:
            return outcome


def _plan_once(
    graph: Graph,
    segments: Mapping[str, Segment],
    order: list[str],
    rules: SegmentRules,
    accumulated: StorageRestrictions,
    barred: set[int],
) -> Mapping[str, SegmentPlan] | SegmentInfeasible | None:
    """Plan each segment in turn. If storages must be barred, add them to `barred` and return None."""
    read, plans, pending = set(accumulated.read), dict[str, SegmentPlan](), list(order)
    while pending:
        name = pending.pop(0)
        restrictions = Restrictions(accumulated.stays, accumulated.again, frozenset(barred), frozenset(read))
        piece = segment_problem(graph, segments[name].operations, rules, restrictions)
        plan = _settle(graph, name, segments[name], piece)
        if isinstance(plan, SegmentInfeasible):
            # Either other segments read too many storages of this one, or its budget is too small by itself.
            read_by_others = (read - accumulated.read) & piece.sizes.keys() - barred
            if not read_by_others:
                return _prove_alone(graph, name, segments[name], rules, accumulated, plan)
            barred |= read_by_others
            return None
        plans[name] = plan
        added = piece.reads_outside(plan.again) - read
        read |= added
        pending += [
            other
            for other in order
            if other in plans and other not in pending and _makes(graph, segments[other], added - plans[other].kept)
        ]
    return plans


def _makes(graph: Graph, segment: Segment, storages: Collection[int]) -> bool:
    return any(graph.maker[storage] in segment.operations for storage in storages)


def _settle(graph: Graph, name: str, segment: Segment, piece: SegmentProblem) -> SegmentPlan | SegmentInfeasible:
    least = least_kept(piece)
    most = _most(segment, piece)
    kept = keep_within(piece, most)
    if kept is None:
        return _too_little(name, most, piece, least, proved=False)
    plain = bytes_of(graph, saved_storages(graph, segment.operations))
    return SegmentPlan(kept, piece.again(kept), piece.bytes(kept), plain, most)


def _prove_alone(
    graph: Graph,
    name: str,
    segment: Segment,
    rules: SegmentRules,
    accumulated: StorageRestrictions,
    failure: SegmentInfeasible,
) -> Mapping[str, SegmentPlan] | SegmentInfeasible:
    """Try to prove that the segment exceeds its budget for any plan of the others: without barred storages."""
    restrictions = Restrictions(accumulated.stays, accumulated.again, read=frozenset(accumulated.read))
    piece = segment_problem(graph, segment.operations, rules, restrictions)
    least = least_kept(piece)
    return _too_little(name, failure.most, piece, least, proved=True) if piece.bytes(least) > failure.most else failure


def _too_little(name: str, most: int, piece: SegmentProblem, least: frozenset[int], proved: bool) -> SegmentInfeasible:
    holding = sorted(least, key=lambda v: (-piece.sizes[v], v))
    why = tuple((v, piece.why.get(v, "what is not kept is computed from it")) for v in holding)
    return SegmentInfeasible(name, most, piece.bytes(least), proved, why)


def _plan_together(
    graph: Graph,
    segments: Mapping[str, Segment],
    rules: SegmentRules,
    accumulated: StorageRestrictions,
    failure: SegmentInfeasible,
) -> Mapping[str, SegmentPlan] | SegmentInfeasible:
    restrictions = Restrictions(accumulated.stays, accumulated.again, read=frozenset(accumulated.read))
    pieces = {
        name: segment_problem(graph, segment.operations, rules, restrictions) for name, segment in segments.items()
    }
    most = {name: _most(segments[name], piece) for name, piece in pieces.items()}
    chosen = keep_together(pieces, most)
    if chosen.kept is None:
        return replace(failure, together=chosen.infeasible)
    plans = dict[str, SegmentPlan]()
    for name, piece in pieces.items():
        kept, plain = chosen.kept[name], saved_storages(graph, segments[name].operations)
        plans[name] = SegmentPlan(kept, piece.again(kept), piece.bytes(kept), bytes_of(graph, plain), most[name])
    return plans


def _most(segment: Segment, piece: SegmentProblem) -> int:
    return piece.bytes(least_kept(piece)) if segment.most is None else segment.most
