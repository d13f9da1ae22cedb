"""Remarks on user-given marks that a plan does not follow, or that free no memory."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Operation

from ...dialects.mark_kind import MarkKind
from ...planning.plan import CopyGroup, Plan
from ...planning.skip_reason import frees_nothing
from ...rules.effects import Permission
from ...support.diagnostics import position_of
from ...support.operations import name_of
from ...support.remarks import Remark, Topic
from ...support.units import readable_bytes
from ..step.marks import asks_to_recompute, mark_of
from ..step.step import Step
from .copying import why_not_recomputable
from .decisions import SegmentDecisions

_WORDS = {
    MarkKind.MUST_SAVE: "save",
    MarkKind.MUST_RECOMPUTE: "recompute",
    MarkKind.PREFER_RECOMPUTE: "recompute",
}
"""The verbs for the marks that change which values are recomputed."""

UNREAD = (
    "the mark to {mark} {operation} has no effect: neither the backward pass nor a recomputed operation reads its "
    "value; remove the mark, or mark a value that the backward pass reads"
)
NOT_FORWARD = (
    "the mark to {mark} {operation} has no effect: it runs in phase '{phase}', and only values of the forward pass are "
    "saved or recomputed; remove the mark"
)
NOT_PREFERRED = "the mark 'prefer_recompute' on {operation} is not followed: {reason}"
NO_SAVING = "recomputing it frees no memory"
SAVES_NOTHING = (
    "the mark to recompute {operation} frees no memory: {freed} need not be saved, but {pinned} are kept instead; "
    "remove the mark, or also mark the operations that compute its operands"
)


def remarks_on_marks(
    decided: SegmentDecisions, plan: Plan, permission: Permission, chosen: Set[Operation] = frozenset()
) -> Iterator[Remark]:
    """Yield a remark on each operation that the user marked, if the mark has no effect, is not followed, or frees no
    memory.

    Marks on operations that must not be recomputed are left out, because `refused_marks` reports them. A source line in
    a layer marks a value in each instance of the layer. If at least one of these marks has an effect, no remark is
    yielded for the line. This function must be called before decisions are written as marks.

    `chosen`: operations whose marks were written for segment budgets, not by the user.
    """
    marks = _MarkEffects(decided, plan, chosen)
    remarks, effective = list[Remark](), set[str]()
    for op in decided.step.phases.order.operations:
        kinds = [kind for kind in dict.fromkeys(map(mark_of, op.results)) if kind is not None and kind in _WORDS]
        if (
            op in chosen
            or not kinds
            or (asks_to_recompute(op) and why_not_recomputable(decided.step, op, permission) is not None)
        ):
            continue
        ineffective = [remark for kind in kinds if (remark := marks.ineffective_mark(op, kind)) is not None]
        remarks += ineffective
        if not ineffective:
            effective.add(position_of(op))
    yield from (remark for remark in remarks if position_of(remark.operation) not in effective)
    yield from (remark for group in plan.groups for remark in marks.useless_marks(group))


@dataclass(frozen=True)
class _MarkEffects:
    """The effects of a plan on the marked operations of its step. `chosen` is described in `remarks_on_marks`."""

    decided: SegmentDecisions
    plan: Plan
    chosen: Set[Operation]

    @property
    def step(self) -> Step:
        return self.decided.step

    @cached_property
    def copied(self) -> frozenset[int]:
        return frozenset(number for group in self.plan.groups for number in group.operations)

    @cached_property
    def read(self) -> frozenset[int]:
        """The storages that gradient operations or copies of the plan read."""
        graph = self.step.graph
        by_copies = {graph.root[value] for number in self.copied for value in graph.reads[number]}
        return frozenset(
            by_copies | {graph.root[value] for value, readers in enumerate(graph.gradient_readers) if readers}
        )

    def ineffective_mark(self, op: Operation, kind: MarkKind) -> Remark | None:
        """Return the remark that a mark of this kind on an operation is not followed or has no effect; None if the mark
        has an effect."""
        mark, operation = _WORDS[kind], name_of(op)
        if not self.step.phases.is_forward(op):
            reason = NOT_FORWARD.format(mark=mark, operation=operation, phase=self.step.phases.phase[op])
            return Remark(op, reason, topic=Topic.NO_EFFECT)
        number = self.step.position(op)
        if number in self.copied:
            return None
        graph = self.step.graph
        if self.read.isdisjoint(graph.root[value] for value in graph.makes[number]):
            return Remark(op, UNREAD.format(mark=mark, operation=operation), topic=Topic.NO_EFFECT)
        if kind is not MarkKind.PREFER_RECOMPUTE:
            return None
        reasons = (decision.reason for decision in self.decided.decisions if op in decision.operations)
        reason = next((reason for reason in reasons if reason is not None), NO_SAVING)
        text = NOT_PREFERRED.format(operation=operation, reason=reason)
        return Remark(op, text, topic=Topic.NO_EFFECT, frees_nothing=frees_nothing(reason))

    def useless_marks(self, group: CopyGroup) -> Iterator[Remark]:
        """For each copy group of user-marked operations that frees no memory, yield a remark on the group's first
        operation."""
        operations = [self.step.operation(number) for number in group.operations]
        is_marked = all(
            op not in self.chosen and MarkKind.MUST_RECOMPUTE in map(mark_of, op.results) for op in operations
        )
        if not operations or not is_marked or group.saved_bytes > 0:
            return
        names = " and ".join(dict.fromkeys(map(name_of, operations)))
        freed, pinned = readable_bytes(group.freed_bytes), readable_bytes(group.pinned_bytes)
        yield Remark(operations[0], SAVES_NOTHING.format(operation=names, freed=freed, pinned=pinned))
