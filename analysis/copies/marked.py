"""Plan the recomputation of marked operations, and report marks without effect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ...dialects.recompute import Names
from ...planning.by_segment.copy_requests import NO_GATE, Targets, with_residuals, with_views
from ...planning.plan import Kept, Plan
from ...rules.names import name_of
from ...rules.permission import Permission
from ...support.diagnostics import Remark
from ...support.timing import part
from ..step.marks import asks_to_recompute, is_demanded, is_to_recompute
from ..step.step import Step
from .copying import CloneOptions
from .legality import why_not_recomputable, why_stays


def refused_marks(step: Step, permission: Permission) -> Iterator[tuple[Operation, str]]:
    """Marks on operations that must not run twice, with the reason."""
    for op in step.phases.order.operations:
        if Names.RECOMPUTE not in op.attributes:
            continue
        if not op.results:
            yield op, f"{name_of(op)} is not recomputed: it has no result that could be needed again"
        elif asks_to_recompute(op) and (reason := why_not_recomputable(step, op, permission)) is not None:
            yield op, reason


@part("plan")
def plan_of_marks(step: Step, copying: CloneOptions, without: Iterable[Operation] = ()) -> Plan:
    """Plan the marked operations, except for those in `without`."""
    targets, marked = _targets(step, frozenset(without))
    return copying.plan(step, completed(step, targets, marked))


def completed(step: Step, targets: Targets, marked: Collection[int]) -> Targets:
    """Add values computed from the targets for the backward pass alone, and views of targets.

    `marked`: operations with attributes of their own, which are not added.
    """
    demanded = [value for value in targets.values if is_demanded(step.value(value))]
    residual_targets = with_residuals(step.graph, targets, demanded, marked)
    return with_views(step.graph, residual_targets, marked)


def _targets(step: Step, without: frozenset[Operation]) -> tuple[Targets, frozenset[int]]:
    """The marked forward values, and all operations with a mark. Marks outside of segments form one segment, ""."""
    segments, values, marked = dict[int, str](), set[int](), set[int]()
    for index, op in enumerate(step.phases.order.operations):
        if op not in without and not _MARKS.isdisjoint(op.attributes):
            marked.add(index)
        if not step.graph.forward[index]:
            continue
        segment = op.attributes.get(Names.SEGMENT)
        if isinstance(segment, StringAttr):
            segments[index] = segment.data
        if op not in without and asks_to_recompute(op):
            segments.setdefault(index, "")
            made = zip(step.graph.makes[index], op.results, strict=True)
            values.update(number for number, result in made if is_to_recompute(result))
    return Targets(segments, frozenset(values)), frozenset(marked)


_MARKS = frozenset({Names.RECOMPUTE, Names.CHECKPOINT})


def without_effect(step: Step, plan: Plan) -> Iterator[Remark]:
    """Remarks on marked values that the plan keeps, with the reason."""
    return (_left_alone(step, kept) for kept in plan.kept)


def _left_alone(step: Step, kept: Kept) -> Remark:
    subject = f"segment '{kept.segment}'" if kept.segment else "the marked operation"
    return Remark(step.operation(kept.operation), f"{subject} is not recomputed: {kept.reason}")


def kept_results(step: Step, plan: Plan) -> Iterator[tuple[Operation, int, str]]:
    """Marked results that are kept although their operation is copied for another result: operation, index, reason."""
    graph, replaced = step.graph, plan.replaced
    for number in dict.fromkeys(op for group in plan.groups for op in group.operations):
        op = step.operation(number)
        for index, (value, result) in enumerate(zip(graph.makes[number], op.results, strict=True)):
            if value not in replaced and is_to_recompute(result) and graph.gradient_readers[value]:
                yield op, index, why_stays(step, result) or NO_GATE
