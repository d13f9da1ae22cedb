"""Plan copies of marked operations. This module checks whether copies are legal, finds the target values, and defines
the options."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.names import Names
from ...planning.by_segment.copy_groups import DEFAULT_GROUPING, GroupOptions, plan_segments
from ...planning.by_segment.plan_targets import Targets, targets_with_views, with_residuals
from ...planning.plan import NotRecomputed, Plan
from ...planning.skip_reason import SkipReason, frees_nothing
from ...rules.effects import NO_PERMISSION, Permission
from ...support.diagnostics import position_of
from ...support.operations import name_of
from ...support.remarks import Remark, Topic
from ...support.timing import part
from ..step.exchanges import why_not_repeatable
from ..step.guessed_phases import has_phase_information
from ..step.marks import ChosenMark, asks_to_recompute, is_demanded, is_to_recompute
from ..step.phase_sources import JAX_PATH
from ..step.step import Step


def unrepeatable_operations(step: Step, permission: Permission) -> frozenset[int]:
    """Return the indices of the operations that must not run twice because of their effects."""
    impure = step.graph.impure
    return frozenset(index for index in impure if why_not_repeatable(step.operation(index), permission) is not None)


def why_not_recomputable(step: Step, op: Operation, permission: Permission = NO_PERMISSION) -> str | None:
    """Return the reason that the operation must not be recomputed, or None if it may be."""
    if not step.phases.is_forward(op):
        return f"{name_of(op)} is not recomputed: it runs in phase '{step.phases.phase[op]}', not in the forward pass"
    if (reason := why_not_repeatable(op, permission)) is not None:
        return f"{name_of(op)} is not recomputed: {reason}"
    staying = [why_stays(step, result) for result in op.results]
    if staying and None not in staying:
        reason = SkipReason.LIVES_ON if SkipReason.LIVES_ON in staying else staying[0]
        return f"{name_of(op)} is not recomputed: {reason}"
    return None


def why_stays(step: Step, value: SSAValue) -> str | None:
    """Return the reason that recomputing the value cannot free its memory; None if there is no such reason.

    A value that the function returns or that the update reads is live after the backward pass even if it is recomputed.
    """
    graph, number = step.graph, step.number(value)
    if graph.root[number] not in graph.live_after_backward:
        return None
    return SkipReason.LIVES_ON if number in graph.returned else _why_update_reads(step, value)


def _why_update_reads(step: Step, value: SSAValue) -> str:
    """Return a message that explains why a value outlives the backward pass. The message names the operation of the
    update that reads the value, directly or through a view."""
    graph, number = step.graph, step.number(value)
    reader = next(
        op
        for op, values in enumerate(graph.reads)
        if graph.update[op] and graph.root[number] in [graph.root[value] for value in values]
    )
    op = step.operation(reader)
    hint = (
        f'; the phase "update" of this {name_of(op)} was inferred: if it belongs to the backward pass, write '
        f'{Names.PHASE} = "gradient" on it to override this'
    )
    return (
        f"{name_of(op)} at {position_of(op)} in the update reads it, so it is live through the whole backward pass "
        "anyway; to free it, do this computation before the backward pass, such as in the differentiated function"
        f"{hint if _is_inferred(op, value) else ''}"
    )


def _is_inferred(reader: Operation, value: SSAValue) -> bool:
    """Return whether the phase of the reader was inferred. The phase is not inferred if the reader has phase
    information, or if the operation that computes the value has a JAX path with a direction."""
    if has_phase_information(reader):
        return False
    return not (isinstance(value.owner, Operation) and JAX_PATH.direction(value.owner) is not None)


@dataclass(frozen=True)
class CloneOptions:
    """Options of the planner for copies of segments.

    Attributes:
        grouping: Options for grouping copies. All copies of a group wait for the same gradient values.
        permission: The user's permission to repeat operations that are not pure functions of their operands.
    """

    grouping: GroupOptions = DEFAULT_GROUPING
    permission: Permission = NO_PERMISSION

    def plan(self, step: Step, targets: Targets) -> Plan:
        """Return the plan that recomputes the targets."""
        return plan_segments(step.graph, targets, unrepeatable_operations(step, self.permission), self.grouping)


DEFAULT_COPYING = CloneOptions()


def refused_marks(step: Step, permission: Permission) -> Iterator[tuple[Operation, str]]:
    """Yield the marked operations that must not be recomputed, each with the reason."""
    for op in step.phases.order.operations:
        if Names.RECOMPUTE not in op.attributes:
            continue
        if not op.results:
            yield op, f"{name_of(op)} is not recomputed: it has no results"
        elif asks_to_recompute(op) and (reason := why_not_recomputable(step, op, permission)) is not None:
            yield op, reason


NO_CHOSEN_MARKS: Mapping[Operation, ChosenMark] = MappingProxyType({})


@part("plan")
def plan_of_marks(step: Step, copying: CloneOptions, chosen: Mapping[Operation, ChosenMark] = NO_CHOSEN_MARKS) -> Plan:
    """Return the plan that recomputes the marked values.

    `chosen`: marks that are not yet written as attributes; they take precedence over the written marks.
    """
    targets, marked = targets_of_marks(step, chosen)
    return copying.plan(step, with_dependent_targets(step, targets, marked))


def with_dependent_targets(
    step: Step, targets: Targets, marked: Collection[int], requested: Collection[SSAValue] | None = None
) -> Targets:
    """Add to the targets their views, and the values that are computed from demanded targets and read only by the
    backward pass.

    Args:
        step: The step.
        targets: The values to recompute.
        marked: Operations with a mark, whose values are not added.
        requested: The demanded values. If None, the values with the mark `must_recompute` are demanded.
    """
    is_requested = is_demanded if requested is None else requested.__contains__
    demanded = [value for value in targets.values if is_requested(step.value(value))]
    residual_targets = with_residuals(step.graph, targets, demanded, marked)
    return targets_with_views(step.graph, residual_targets, marked)


def targets_of_marks(
    step: Step, chosen: Mapping[Operation, ChosenMark], ignored: Set[Operation] = frozenset()
) -> tuple[Targets, frozenset[int]]:
    """Return the marked forward values as targets, and the indices of all operations with a mark.

    All marked operations outside segments form one segment, whose name is "".

    Args:
        step: The step.
        chosen: Marks that are not yet written as attributes; they take precedence over the written marks.
        ignored: Operations whose written mark for recomputation is ignored.
    """
    segments = dict[int, str]()
    values = set[int]()
    marked = set[int]()
    for index, op in enumerate(step.phases.order.operations):
        mark = chosen.get(op, _UNCHANGED)
        attributes = op.attributes
        has_own_mark = Names.RECOMPUTE in attributes and op not in ignored
        if mark.recomputed is not None or has_own_mark or Names.CHECKPOINT in attributes:
            marked.add(index)
        if not step.graph.forward[index]:
            continue
        stated = attributes.get(Names.SEGMENT)
        if (segment := mark.segment or (stated.data if isinstance(stated, StringAttr) else None)) is not None:
            segments[index] = segment
        flags = mark.recomputed
        if flags is None:
            flags = tuple(map(is_to_recompute, op.results)) if has_own_mark else ()
        if any(flags):
            segments.setdefault(index, "")
            values.update(number for number, flag in zip(step.graph.makes[index], flags, strict=True) if flag)
    return Targets(segments, frozenset(values)), frozenset(marked)


_UNCHANGED = ChosenMark()


def ineffective_marks(step: Step, plan: Plan) -> Iterator[Remark]:
    """Yield a remark for each segment or marked operation that the plan keeps, with the reason."""
    copied = [step.operation(number) for group in plan.groups for number in group.operations]
    effective = {position_of(op) for op in copied if _is_marked_by_user(op)}
    for entry in plan.kept:
        futile = frees_nothing(entry.reason)
        if entry.segment:
            reason = f"segment '{entry.segment}' is not recomputed: {entry.reason}"
            yield Remark(step.operation(entry.operation), reason, segments=(entry.segment,), frees_nothing=futile)
            continue
        for op in _marked_operations(step, entry, copied):
            has_no_effect = _is_marked_by_user(op) and position_of(op) not in effective
            topic = Topic.NO_EFFECT if has_no_effect else Topic.OTHER
            reason = f"the marked operation is not recomputed: {entry.reason}"
            yield Remark(op, reason, topic=topic, frees_nothing=futile)


def _is_marked_by_user(op: Operation) -> bool:
    """Return whether the operation, which is outside segments, has a mark that the user may have written. Fetches of
    offloaded values are excluded, because their marks are always written by a pass."""
    return Names.RECOMPUTE in op.attributes and Names.OFFLOAD not in op.attributes


def _marked_operations(step: Step, entry: NotRecomputed, copied: Collection[Operation]) -> list[Operation]:
    """Return the marked operations outside segments to which an entry refers: the operation of the entry itself or, if
    it belongs to the backward pass, the marked operations that compute its operands."""
    operation = step.operation(entry.operation)
    if step.phases.is_forward(operation):
        return [operation]
    graph = step.graph
    makers = dict.fromkeys(step.operation(graph.maker[value]) for value in graph.reads[entry.operation])
    return [op for op in makers if asks_to_recompute(op) and op not in copied] or [operation]


def marked_results_kept(step: Step, plan: Plan) -> Iterator[tuple[Operation, int, str]]:
    """Yield the marked results that are kept although their operation is copied for another result.

    Each is a tuple of the operation, the result index and the reason.
    """
    graph, replaced = step.graph, plan.replaced
    for number in dict.fromkeys(op for group in plan.groups for op in group.operations):
        op = step.operation(number)
        for index, (value, result) in enumerate(zip(graph.makes[number], op.results, strict=True)):
            if value not in replaced and is_to_recompute(result) and graph.gradient_readers[value]:
                yield op, index, why_stays(step, result) or SkipReason.NO_GATE
