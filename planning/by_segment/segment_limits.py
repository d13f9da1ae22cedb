"""Choose the storages that segments with byte budgets keep, at the least recomputation work.

Segments are planned one after the other, the last of the step first (`keep_alone.py`). A recomputed operation may read
a storage of another segment, which must then keep it within its own budget. If it cannot, the storage is barred: no
other segment may recompute from it. Planning repeats until all budgets hold. If it fails, one integer program plans all
segments (`keep_together.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ..graph import Graph
from .keep_alone import keep_within, least_kept
from .keep_together import keep_together
from .saved_storages import bytes_of, saved_storages
from .segment_problem import Restrictions, SegmentProblem, SegmentRules, segment_problem


@dataclass(frozen=True)
class Segment:
    """The operations of a segment, all in the forward pass, and the bytes that it may save; None for the minimum."""

    operations: frozenset[int]
    most: int | None


@dataclass(frozen=True)
class SegmentPlan:
    """The plan of one segment.

    Attributes:
        kept: The storages that it keeps.
        again: The storages that are recomputed.
        bytes: The saved bytes under the plan.
        plain: The saved bytes without recomputation.
        most: The budget in bytes.
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
    """A segment that cannot keep its budget.

    Attributes:
        segment: The name of the segment.
        most: The budget in bytes.
        least: The fewest bytes that it can save.
        proved: Whether `least` holds for any plan of the other segments.
        holding: The storages that make up these bytes, with the reason for each.
        together: Whether it is proved that the segments cannot keep all budgets at the same time.
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

    Attributes:
        stays: Storages that turned out not to be recomputable, with the reason.
        again: Storages that must be recomputed.
        read: Storages that must be saved, because other segments read them.
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
    """Plan all segments within their budgets.

    Args:
        segments: The segments by name.
        once: Operations that must not run twice.
        outputs: Whether outputs of a segment may be recomputed too.
        accumulated: Restrictions on storages.

    Returns:
        A plan for each segment, or the first segment that cannot keep its budget.
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
    """Plan each segment in turn. If a segment cannot keep the storages that others read, add these to `barred`, and
    return None."""
    read, plans, pending = set(accumulated.read), dict[str, SegmentPlan](), list(order)
    while pending:
        name = pending.pop(0)
        restrictions = Restrictions(accumulated.stays, accumulated.again, frozenset(barred), frozenset(read))
        piece = segment_problem(graph, segments[name].operations, rules, restrictions)
        plan = _settle(graph, name, segments[name], piece)
        if isinstance(plan, SegmentInfeasible):
            # Other segments read too many storages of this one, or its budget is too small for its own.
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
    """Plan without barred storages: if the segment exceeds its budget even then, it does so for any plan of the other
    segments."""
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
