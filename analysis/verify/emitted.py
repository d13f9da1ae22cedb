"""Verify that each operand of an emitted program is the value, original or copy, that the plan prescribes.

Copies are identified by their attributes.

A forward operation must read the original value. Any other operation must read the copy from the latest preceding copy
group that replaces the value, or the original if there is none. The check does not rely on the bookkeeping of
`apply_plan`.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.names import Names
from ...planning.plan import CopyGroup, Plan
from ...support.operations import name_of
from ..step.order import read_values
from ..step.step import Step

Source = tuple[int, int] | SSAValue
"""A copy, given by its id and copy number, or an original value."""


def wrong_reads(step: Step, plan: Plan) -> Iterator[tuple[Operation, str]]:
    """Yield the operations that read a value other than the planned value, each with a description of the difference.

    The step must contain its copies, and dead code must not have been removed yet.
    """
    graph = step.graph
    replacing = dict[int, list[CopyGroup]]()
    for group in plan.groups:
        for value in group.replaces:
            replacing.setdefault(value, []).append(group)
    for reader, op in enumerate(step.numbered.operations):
        for value, read in zip(graph.reads[reader], read_values(op), strict=True):
            if read is step.value(value) and value not in replacing:
                continue
            groups = [] if graph.forward[reader] else replacing.get(value, [])
            latest = next((group for group in reversed(groups) if group.before <= reader), None)
            if (wrong := _difference(step, value, latest, read)) is not None:
                yield op, wrong


def _difference(step: Step, value: int, group: CopyGroup | None, read: SSAValue) -> str | None:
    expected, index = _expected_copy(step, value, group)
    actual, actual_index = _source(read)
    if actual == expected and actual_index == index:
        return None
    sources = f"{_describe_source(actual)}, expected {_describe_source(expected)} according to the plan"
    return f"{_describe(step, value)} is read from {sources}"


def _expected_copy(step: Step, value: int, group: CopyGroup | None) -> tuple[Source, int]:
    original = step.value(value)
    if group is None or not isinstance(original, OpResult):
        return _source(original)
    number = dict(zip(group.operations, group.numbers, strict=True))[step.graph.maker[value]]
    return (_number(original.op, Names.ID), number), original.index


def _source(value: SSAValue) -> tuple[Source, int]:
    """Look through `recompute.depend` operations. Return the copy with its result index, or the original value with
    0."""
    while isinstance(value, OpResult) and name_of(value.op) == "recompute.depend":
        value = value.op.operands[value.index]
    if isinstance(value, OpResult) and Names.COPY in value.op.attributes:
        return (_number(value.op, Names.ID), _number(value.op, Names.COPY)), value.index
    return value, 0


def _number(op: Operation, name: str) -> int:
    attribute = op.attributes.get(name)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else -1


def _describe(step: Step, value: int) -> str:
    maker = step.graph.maker[value]
    return f"a result of {step.graph.names[maker]}" if maker >= 0 else "a value from outside the block"


def _describe_source(source: Source) -> str:
    return f"copy {source[1]} of id {source[0]}" if isinstance(source, tuple) else "the original"
