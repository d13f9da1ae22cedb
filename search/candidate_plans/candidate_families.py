"""Make families of smaller plans, which copy fewer operations than a given plan (`plan_reduction.py`).

The plan of an attempt is reduced segment by segment. The plans of two attempts with different policies are mixed
segment by segment. A solver's plan is reduced place by place; a place is a point of the program at which a group of
copies is inserted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...planning.graph import Graph
from ...planning.plan import CopyGroup, Plan
from ...planning.plan_file import OperationNote
from ...planning.solvers.result import Stop
from ..choice.best_attempt import ScoredAttempt
from .plan_family import PlanFamily, UnscoredPlan
from .plan_origin import Reduction
from .plan_reduction import group_subsets, mix, thin_out, with_groups
from .step_forecasts import StepCandidate

MAX_THINNED = 4
"""Maximum number of attempts that are also tried with fewer segments, since each makes a family of plans to search.
Half of these attempts have the lowest peaks under the XLA:CPU model, and the other half have the fewest extra FLOPs."""


@dataclass(frozen=True)
class ReducedPlans:
    """A candidate (`whole`), and the family of smaller plans that are derived from it."""

    whole: StepCandidate
    family: PlanFamily


def thinned_attempts(attempts: Sequence[ScoredAttempt]) -> set[int]:
    """Return the indices of the attempts that are also tried with fewer segments: up to `MAX_THINNED` attempts with
    their own policy, and up to `MAX_THINNED` attempts without their own policy."""
    return {*_thinned(attempts, has_policy=False), *_thinned(attempts, has_policy=True)}


def _thinned(attempts: Sequence[ScoredAttempt], has_policy: bool) -> set[int]:
    """Return the indices of the attempts that are tried with fewer segments: the `MAX_THINNED // 2` attempts with the
    lowest peaks, and equally many with the fewest extra FLOPs. Only attempts with copies are eligible. If `has_policy`,
    only attempts with their own policy are eligible, otherwise only those without."""
    eligible = [
        at
        for at, attempt in enumerate(attempts)
        if attempt.planned.plan.copies and bool(attempt.planned.attempt.policy) is has_policy
    ]
    by_peak = sorted(eligible, key=lambda at: attempts[at].peaks.xla)
    by_work = sorted(eligible, key=lambda at: attempts[at].planned.plan.extra_flops)
    return {*by_peak[: MAX_THINNED // 2], *by_work[: MAX_THINNED // 2]}


def families_by_segment(whole: StepCandidate, segments: Mapping[int, str]) -> list[ReducedPlans]:
    """Return the families of plans that copy fewer and fewer segments of the candidate `whole`."""

    def smaller(segment_names: frozenset[str], plan: Plan, _: Stop) -> UnscoredPlan:
        origin = whole.origin.with_reduction(Reduction(len(segment_names)))
        return UnscoredPlan(origin, plan, _without_marks_of_others(whole.notes, segment_names), segments)

    makers = [[partial(smaller, names, plan) for names, plan in sequence] for sequence in thin_out(whole.plan)]
    return [ReducedPlans(whole, PlanFamily(of_sequence)) for of_sequence in makers]


def families_by_policy(
    whole: StepCandidate, cheaper: StepCandidate, policy: str, segments: Mapping[int, str]
) -> list[ReducedPlans]:
    """Return the families of plans that copy more and more segments in the same way as the candidate `cheaper`.

    `cheaper` results from the attempt of `whole` under the policy `policy`, and requires less work than `whole`.
    """

    def mixed(segment_names: frozenset[str], plan: Plan, _: Stop) -> UnscoredPlan:
        origin = whole.origin.with_reduction(Reduction(len(segment_names), policy=policy))
        own = [note for note in whole.notes if note.segment is None or note.segment in segment_names]
        others = [note for note in cheaper.notes if note.segment is not None and note.segment not in segment_names]
        notes = tuple(sorted((*own, *others), key=lambda note: note.operation))
        return UnscoredPlan(origin, plan, notes, segments)

    makers = [[partial(mixed, names, plan) for names, plan in sequence] for sequence in mix(whole.plan, cheaper.plan)]
    return [ReducedPlans(whole, PlanFamily(of_sequence)) for of_sequence in makers]


def families_by_place(graph: Graph, whole: StepCandidate, steps: int) -> list[ReducedPlans]:
    """Return the families of plans with fewer and fewer copy groups of the candidate `whole`. Each family has about
    `steps` plans."""

    def smaller(groups: Sequence[CopyGroup], _: Stop) -> UnscoredPlan:
        origin = whole.origin.with_reduction(Reduction(len(groups), len(whole.plan.groups)))
        return UnscoredPlan(origin, with_groups(graph, groups), whole.notes, {})

    makers = [[partial(smaller, groups) for groups in fewer] for fewer in group_subsets(whole.plan, steps)]
    return [ReducedPlans(whole, PlanFamily(of_sequence)) for of_sequence in makers]


def _without_marks_of_others(notes: Iterable[OperationNote], names: frozenset[str]) -> tuple[OperationNote, ...]:
    """Return the notes without the marks of segments that are not in `names`. The notes still name the segment of each
    operation."""
    return tuple(
        note if note.segment is None or note.segment in names else replace(note, recompute=None, checkpoint=False)
        for note in notes
    )
