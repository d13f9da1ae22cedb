"""Choose the storages that segments with byte budgets keep, with the least recomputation work.

Segments are planned one after the other, starting with the last one of the step (`keep_alone.py`). A recomputed
operation may read a storage of another segment. That segment must then keep the storage within its own budget. If this
segment cannot keep the storage, the storage is barred: no other segment may recompute from it. Planning is repeated
until all budgets are met. If planning the segments in turn fails, one integer program plans all segments
(`keep_together.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ..graph import Graph
from .keep_alone import keep_within, smallest_kept
from .keep_together import keep_together
from .saved_storages import bytes_of, saved_storages
from .segment_problem import Restrictions, SegmentProblem, SegmentRules, segment_problem


@dataclass(frozen=True)
class Segment:
    """A segment of the step and its byte budget.

    Attributes:
        operations: Its operations, all in the forward pass.
        budget_bytes: The maximum number of bytes that it may save for the backward pass; None to save as few bytes as
            possible.
    """

    operations: frozenset[int]
    budget_bytes: int | None


@dataclass(frozen=True)
class SegmentPlan:
    """The storages that one segment keeps and recomputes, and the bytes that it saves.

    Attributes:
        kept: The storages that it keeps.
        recomputed: The storages that are recomputed.
        saved_bytes: The bytes that it saves under the plan.
        plain_bytes: The bytes that it saves without recomputation.
        budget_bytes: The budget.
    """

    kept: frozenset[int]
    recomputed: frozenset[int]
    saved_bytes: int
    plain_bytes: int
    budget_bytes: int

    @property
    def recomputes_nothing(self) -> bool:
        """Whether the plan recomputes no storage."""
        return not self.recomputed


@dataclass(frozen=True)
class SegmentInfeasible:
    """A segment that cannot meet its budget.

    Attributes:
        segment: The name of the segment.
        budget_bytes: The budget.
        least_bytes: The fewest bytes that it can save.
        is_proved: Whether `least_bytes` is a lower bound under every plan of the other segments.
        holding: The storages that make up these bytes, each with the reason that it must be kept.
        is_proved_together: Whether it is proved that the segments cannot meet all budgets at the same time.
    """

    segment: str
    budget_bytes: int
    least_bytes: int
    is_proved: bool
    holding: tuple[tuple[int, str], ...]
    is_proved_together: bool = False


@dataclass
class StorageRestrictions:
    """Restrictions on storages. They accumulate while planning is repeated.

    Attributes:
        not_recomputable: Storages that turned out not to be recomputable, each with the reason.
        must_recompute: Storages that must be recomputed.
        read_by_others: Storages that must be saved, because other segments read them.
    """

    not_recomputable: dict[int, str] = field(default_factory=dict[int, str])
    must_recompute: frozenset[int] = frozenset()
    read_by_others: set[int] = field(default_factory=set[int])


def plan_segments_within(
    graph: Graph,
    segments: Mapping[str, Segment],
    once: Collection[int],
    outputs: bool,
    accumulated: StorageRestrictions,
) -> Mapping[str, SegmentPlan] | SegmentInfeasible:
    """Plan all segments within their budgets.

    Args:
        graph: The graph of the step.
        segments: The segments by name.
        once: Operations that must not run twice.
        outputs: Whether segment outputs may also be recomputed.
        accumulated: Restrictions on storages.

    Returns:
        A plan for each segment, or the first segment that cannot meet its budget.
    """
    named = {v for segment in segments.values() for op in segment.operations for v in graph.makes[op]}
    rules = SegmentRules(frozenset(once), outputs, frozenset(named))
    planner = _SegmentPlanner(graph, segments, rules, accumulated)
    while True:
        outcome = planner.plan_in_turn()
        if isinstance(outcome, SegmentInfeasible) and not outcome.is_proved:
            return planner.plan_together(outcome)
        if outcome is not None:
            return outcome


@dataclass
class _SegmentPlanner:
    """A planner for all segments. It accumulates barred storages from one attempt to the next.

    Attributes:
        rules: The rules for all segments.
        accumulated: The restrictions on storages from the caller.
        barred: The storages that recomputed operations of other segments must not read.
    """

    graph: Graph
    segments: Mapping[str, Segment]
    rules: SegmentRules
    accumulated: StorageRestrictions
    barred: set[int] = field(default_factory=set[int])

    def plan_in_turn(self) -> Mapping[str, SegmentPlan] | SegmentInfeasible | None:
        """Plan each segment in turn, starting with the last one of the step. If a segment cannot keep the storages that
        other segments read, add them to `barred` and return None."""
        order = sorted(self.segments, key=lambda name: -max(self.segments[name].operations))
        read = set(self.accumulated.read_by_others)
        plans = dict[str, SegmentPlan]()
        pending = list(order)
        while pending:
            name = pending.pop(0)
            piece = self._problem_of(name, read, self.barred)
            plan = self._plan(name, piece)
            if isinstance(plan, SegmentInfeasible):
                # Either other segments read too many storages of this segment, or its budget is too small for its own
                # needs.
                read_by_others = (read - self.accumulated.read_by_others) & piece.sizes.keys() - self.barred
                if not read_by_others:
                    return self._with_proof(plan)
                self.barred |= read_by_others
                return None
            plans[name] = plan
            newly_read = piece.reads_outside(plan.recomputed) - read
            read |= newly_read
            # A planned segment that does not keep a newly read storage is re-planned.
            pending += [
                other
                for other in order
                if other in plans and other not in pending and self._makes(other, newly_read - plans[other].kept)
            ]
        return plans

    def plan_together(self, failure: SegmentInfeasible) -> Mapping[str, SegmentPlan] | SegmentInfeasible:
        """Plan all segments with one integer program. If there is no solution, return `failure`, the outcome of
        planning in turn."""
        pieces = {name: self._problem_of(name, self.accumulated.read_by_others) for name in self.segments}
        budgets = {name: self._budget(name, piece) for name, piece in pieces.items()}
        chosen = keep_together(pieces, budgets)
        if chosen.kept is None:
            return replace(failure, is_proved_together=chosen.infeasible)
        return {name: self._plan_of(name, piece, chosen.kept[name], budgets[name]) for name, piece in pieces.items()}

    def _problem_of(self, name: str, read: Collection[int], barred: Collection[int] = ()) -> SegmentProblem:
        """Return the problem of choosing a segment's kept storages. `read`: the storages that it must keep because
        other segments read them."""
        given = self.accumulated
        restrictions = Restrictions(given.not_recomputable, given.must_recompute, frozenset(barred), frozenset(read))
        return segment_problem(self.graph, self.segments[name].operations, self.rules, restrictions)

    def _plan(self, name: str, piece: SegmentProblem) -> SegmentPlan | SegmentInfeasible:
        budget = self._budget(name, piece)
        kept_storages = keep_within(piece, budget)
        if kept_storages is None:
            return _infeasible(name, budget, piece, smallest_kept(piece), proved=False)
        return self._plan_of(name, piece, kept_storages, budget)

    def _plan_of(self, name: str, piece: SegmentProblem, kept_storages: frozenset[int], budget: int) -> SegmentPlan:
        plain = bytes_of(self.graph, saved_storages(self.graph, self.segments[name].operations))
        return SegmentPlan(
            kept_storages, piece.recomputed_without(kept_storages), piece.bytes(kept_storages), plain, budget
        )

    def _with_proof(self, failure: SegmentInfeasible) -> SegmentInfeasible:
        """Return the failure, marked as proved if possible. If the segment exceeds its budget even when no storage is
        barred, it exceeds its budget under every plan of the other segments, so the failure is proved."""
        piece = self._problem_of(failure.segment, self.accumulated.read_by_others)
        least = smallest_kept(piece)
        if piece.bytes(least) <= failure.budget_bytes:
            return failure
        return _infeasible(failure.segment, failure.budget_bytes, piece, least, proved=True)

    def _makes(self, name: str, storages: Collection[int]) -> bool:
        """Return whether an operation of the segment makes one of the storages."""
        return any(self.graph.maker[storage] in self.segments[name].operations for storage in storages)

    def _budget(self, name: str, piece: SegmentProblem) -> int:
        """Return the budget of a segment in bytes; without a budget, the fewest bytes that the segment can save."""
        budget = self.segments[name].budget_bytes
        return piece.bytes(smallest_kept(piece)) if budget is None else budget


def _infeasible(
    name: str, budget: int, piece: SegmentProblem, least: frozenset[int], proved: bool
) -> SegmentInfeasible:
    """Describe a segment that cannot meet its budget. The description gives the reason for each storage that the
    segment must keep. `least`: the smallest set of storages that it can keep."""
    holding = sorted(least, key=lambda v: (-piece.sizes[v], v))
    reasons = tuple((v, piece.reasons.get(v, "values that are not kept are computed from it")) for v in holding)
    return SegmentInfeasible(name, budget, piece.bytes(least), proved, reasons)
