"""From the marks on the operations of a step to a plan: what they ask for, and where they ask for nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ...dialects.recompute import Names
from ...planning.by_segment.reasons import NO_GATE
from ...planning.by_segment.targets import Targets, with_residuals, with_views
from ...planning.plan import Kept, Plan
from ...rules.names import name_of
from ...rules.permission import Permission
from ...support.diagnostics import Remark
from ...support.timing import part
from ..step.marks import asks_to_recompute, is_demanded, is_to_recompute
from ..step.step import Step
from .copying import Copying
from .legality import why_not_recomputable, why_stays


def refused_marks(step: Step, permission: Permission) -> Iterator[tuple[Operation, str]]:
    """Marks on operations that must not run twice, and why."""
    for op in step.phases.order.operations:
        if Names.RECOMPUTE not in op.attributes:
            continue
        if not op.results:
            yield op, f"{name_of(op)} is not recomputed: it has no result that could be needed again"
        elif asks_to_recompute(op) and (reason := why_not_recomputable(step, op, permission)) is not None:
            yield op, reason


@part("plan")
def plan_of_marks(step: Step, how: Copying, without: Iterable[Operation] = ()) -> Plan:
    """The plan that the marks ask for, those on `without` left out."""
    targets, spoken_of = _targets(step, frozenset(without))
    return how.plan(step, completed(step, targets, spoken_of))


def completed(step: Step, targets: Targets, spoken_of: Collection[int]) -> Targets:
    """With what goes along with the targets: what is made of them for the backward pass alone, and views of them."""
    demanded = [value for value in targets.values if is_demanded(step.value(value))]
    made = with_residuals(step.graph, targets, demanded, spoken_of)
    return with_views(step.graph, made, spoken_of)


def _targets(step: Step, without: frozenset[Operation]) -> tuple[Targets, frozenset[int]]:
    """Marked forward values; marks outside every segment form one of their own. And of which operations is spoken."""
    segments, values, spoken_of = dict[int, str](), set[int](), set[int]()
    for index, op in enumerate(step.phases.order.operations):
        if op not in without and not _SAID.isdisjoint(op.attributes):
            spoken_of.add(index)
        if not step.graph.forward[index]:
            continue
        segment = op.attributes.get(Names.SEGMENT)
        if isinstance(segment, StringAttr):
            segments[index] = segment.data
        if op not in without and asks_to_recompute(op):
            segments.setdefault(index, "")
            made = zip(step.graph.makes[index], op.results, strict=True)
            values.update(number for number, result in made if is_to_recompute(result))
    return Targets(segments, frozenset(values)), frozenset(spoken_of)


_SAID = frozenset({Names.RECOMPUTE, Names.CHECKPOINT})


def without_effect(step: Step, plan: Plan) -> Iterator[Remark]:
    """What the plan keeps although it was asked for, and why."""
    return (_left_alone(step, kept) for kept in plan.kept)


def _left_alone(step: Step, kept: Kept) -> Remark:
    what = f"segment '{kept.segment}'" if kept.segment else "the marked operation"
    return Remark(step.operation(kept.operation), f"{what} is not recomputed: {kept.reason}")


def kept_results(step: Step, plan: Plan) -> Iterator[tuple[Operation, int, str]]:
    """Marked results that stay, while their operation is copied for the sake of another result: which, and why."""
    graph, replaced = step.graph, plan.replaced
    for number in dict.fromkeys(op for group in plan.groups for op in group.operations):
        op = step.operation(number)
        for index, (value, result) in enumerate(zip(graph.makes[number], op.results, strict=True)):
            if value not in replaced and is_to_recompute(result) and graph.gradient_readers[value]:
                yield op, index, why_stays(step, result) or NO_GATE
