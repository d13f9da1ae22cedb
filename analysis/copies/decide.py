"""What a policy says of each segment: recompute its inside, or why not.

Marking and explaining read the same decisions.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from ...dialects.recompute import Names
from ...options.selection import Selection
from ...planning.by_segment.reasons import ALL_KEPT, NO_GATE, NOTHING_FREED, SKIPPED
from ...planning.by_segment.sinking import sinkable
from ...planning.by_segment.targets import Targets
from ...planning.graph import Graph
from ...planning.plan import CopyGroup, Plan
from ...support.timing import part
from ..request.resolved import Resolved, resolve
from ..request.segments import instance_name, segments_of_gradients
from ..step.marks import Policy, is_forced, mark_of
from ..step.step import Step
from .attempts import FIRST, Attempt
from .copying import Copying


@dataclass(frozen=True)
class Decision:
    """One segment instance: of its `operations`, the `values` may be recomputed. `reason` says why nothing is.

    `groups` is what recomputing them means, also where it is not worth it; empty where it cannot be done. `own`:
    outputs that are kept, and recomputed for these readers alone.
    """

    segment: str
    operations: tuple[Operation, ...]
    values: frozenset[SSAValue]
    groups: tuple[CopyGroup, ...]
    reason: str | None
    own: Mapping[SSAValue, frozenset[int]] = field(default_factory=dict[SSAValue, frozenset[int]])

    @property
    def first(self) -> Operation:
        """Where the segment is reported."""
        return self.operations[0]

    @property
    def recomputed(self) -> bool:
        return self.reason is None

    @property
    def inside(self) -> tuple[Operation, ...]:
        return tuple(op for op in self.operations if any(result in self.values for result in op.results))

    @property
    def outputs(self) -> tuple[Operation, ...]:
        """What is kept."""
        return tuple(op for op in self.operations if not any(result in self.values for result in op.results))


@dataclass(frozen=True)
class Decisions:
    """Decisions in program order, and what is to be said besides."""

    step: Step
    decisions: tuple[Decision, ...]
    resolved: Resolved


@part("decide")
def decide(
    step: Step,
    selection: Selection,
    attempt: Attempt = FIRST,
    named: Mapping[Operation, str] | None = None,
    staged: bool = True,
) -> Decisions:
    """One decision for each segment instance, then one for what moves outside of them. Raises `BadSelection`.

    `named`: the segments that have names, where they are known already. `staged`: see `Copying`.
    """
    resolved = resolve(step.phases, selection, _cut(step, attempt) or named)
    decider = _Decider(
        step, selection, attempt, staged, _gradient_scopes(step, selection) if attempt.own_outputs else {}
    )
    decisions = [
        Decision(segment, operations, frozenset(), (), SKIPPED)
        if segment in resolved.skipped
        else decider.decide(segment, operations, resolved.saved)
        for segment, operations in resolved.members.items()
    ]
    return Decisions(step, (*decisions, *_outside(step, resolved, decider)), resolved)


def _cut(step: Step, attempt: Attempt) -> Mapping[Operation, str] | None:
    if attempt.cuts is None:
        return None
    return {step.operation(op): segment for op, segment in attempt.cuts.segments(step.graph).items()}


def _gradient_scopes(step: Step, selection: Selection) -> dict[int, str]:
    found = segments_of_gradients(step.phases, selection.segments)
    return {step.position(op): scope for op, scope in found.items()}


def _outside(step: Step, resolved: Resolved, decider: _Decider) -> list[Decision]:
    """Preferences outside of every segment, and what is moved because only the backward pass reads it."""
    taken = {op for operations in resolved.members.values() for op in operations}
    outside = [op for op in step.phases.order.operations if op not in taken and step.phases.is_forward(op)]
    preferred = [op for op in outside if any(mark_of(result) is Policy.PREFER_RECOMPUTE for result in op.results)]
    taken.update(op for op in outside if Names.RECOMPUTE in op.attributes)
    groups = (step.numbered.operations_of(one) for one in sinkable(step.graph, set(step.positions(taken))))
    moved = (decider.decide("", group, outputs=False) for group in groups)
    stated = [decider.decide("", preferred, outputs=True)] if preferred else []
    return [*stated, *(one for one in moved if one.recomputed)]


@dataclass(frozen=True)
class _Decider:
    """`scopes`: of gradient operations, the segment whose own gradient they are."""

    step: Step
    selection: Selection
    attempt: Attempt
    staged: bool
    scopes: Mapping[int, str]

    def decide(
        self,
        segment: str,
        operations: Sequence[Operation],
        saved: frozenset[SSAValue] = frozenset(),
        outputs: bool | None = None,
    ) -> Decision:
        """`outputs`: whether what leaves the operations is recomputed too; as the selection says if not given."""
        step, graph = self.step, self.step.graph
        outputs = self.selection.outputs if outputs is None else outputs
        members = step.positions(operations)
        kept = {step.number(value) for value in saved if value in step.numbered.number}
        leaving = set[int]() if outputs else kept_outputs(graph, members)
        marked = {op for op, at in zip(members, operations, strict=True) if Names.RECOMPUTE in at.attributes}
        own = self._own(segment, members, leaving - kept, marked) if self.attempt.own_outputs else {}
        kept |= leaving - own.keys()
        values = frozenset(
            value
            for op in members
            for value in graph.makes[op]
            if _is_target(step, value, value not in kept and not _lives_on(graph, value), op in marked)
        )
        # Each segment for itself: nothing is known of where the next one begins.
        how = Copying(
            beside=self.attempt.beside, staged=self.staged, joined=False, permission=self.selection.permission
        )
        plan = how.plan(step, Targets(dict.fromkeys(members, segment), values, own))
        forced = any(map(is_forced, operations)) or (outputs and bool(segment))
        meant = frozenset(step.numbered.values_of(values))
        again = {step.value(value): readers for value, readers in own.items() if value in values}
        return Decision(segment, tuple(operations), meant, plan.groups, _why_not(plan, forced), again)

    def _own(
        self, segment: str, members: Sequence[int], leaving: Iterable[int], marked: Container[int]
    ) -> dict[int, frozenset[int]]:
        """Of what leaves a segment that which its own gradient reads, and who that is.

        By scope, not by what they depend on: what stands between two segments is neither's.
        """
        graph, inside, scope = self.step.graph, set(members), instance_name(segment)
        found = dict[int, frozenset[int]]()
        for value in leaving:
            own = [
                reader
                for reader in graph.readers[value]
                if (graph.gradient[reader] and self.scopes.get(reader) == scope) or reader in inside
            ]
            if own and graph.maker[value] not in marked:
                found[value] = frozenset(own)
        return found


def _is_target(step: Step, value: int, by_policy: bool, marked: bool) -> bool:
    """A mark on the operation wins over the policy."""
    mark = mark_of(step.value(value)) if marked else None
    return by_policy if mark is None else mark.recomputes


def _lives_on(graph: Graph, value: int) -> bool:
    return graph.root[value] in graph.lives_on


def kept_outputs(graph: Graph, segment: Iterable[int]) -> set[int]:
    """What a forward operation outside of the segment reads, and what such a value is a view of.

    Were they recomputed, each segment would need the one before it again.
    """
    inside = set(segment)
    found = {
        value
        for value in graph.results_of(inside)
        if any(graph.forward[reader] and reader not in inside for reader in graph.readers[value])
    }
    return found | {root for value in found if graph.maker[root := graph.root[value]] in inside}


def stays(graph: Graph, segment: Sequence[int]) -> set[int]:
    """The results of a segment that are kept: its outputs, and what outlives the backward pass anyway."""
    return kept_outputs(graph, segment) | {value for value in graph.results_of(segment) if _lives_on(graph, value)}


def _why_not(plan: Plan, forced: bool) -> str | None:
    # A segment whose first values are needed at once is the last segment: all of it would have to be there at once.
    ungated = next((one.reason for one in plan.kept if one.reason == NO_GATE), None)
    if ungated is not None or not plan.groups:
        return ungated or (plan.kept[0].reason if plan.kept else ALL_KEPT)
    freed, pinned = (sum(sizes) for sizes in zip(*((g.freed_bytes, g.pinned_bytes) for g in plan.groups), strict=True))
    if freed == pinned == 0 and not forced:
        return NOTHING_FREED
    if freed <= pinned and not forced:
        return f"nothing is saved: recomputing frees {freed} bytes and keeps {pinned} bytes alive in their place"
    return None


def explicit_mark(op: Operation) -> bool | None:
    """Whether the user says that the operation is recomputed (True) or kept (False); None where nothing is said."""
    if Names.RECOMPUTE not in op.attributes:
        return None
    said = [mark for result in op.results if (mark := mark_of(result)) is not None]
    return any(mark.recomputes for mark in said) if said else None
