"""Whether a program reads what its plan says, use by use: a check of what was emitted, by the attributes of the copies.

For whoever reads a value, forward operations excepted, the plan names the latest copy group in front of the reader that
replaces the value, or the original. `apply_plan` put the copies there; nothing of its book-keeping is used here.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.recompute import Names
from ...planning.plan import CopyGroup, Plan
from ...rules.names import name_of
from ..step.order import read_values
from ..step.step import Step

Source = tuple[int, int] | SSAValue
"""A copy, by the id and the number that it carries; or an original value."""


def wrong_reads(step: Step, plan: Plan) -> Iterator[tuple[Operation, str]]:
    """Operations of the step, which has its copies now and is not cleaned up yet, that read something else."""
    graph = step.graph
    replacing = dict[int, list[CopyGroup]]()
    for group in plan.groups:
        for value in group.replaces:
            replacing.setdefault(value, []).append(group)
    for reader, op in enumerate(step.numbered.operations):
        for value, read in zip(graph.reads[reader], read_values(op), strict=True):
            groups = [] if graph.forward[reader] else replacing.get(value, [])
            latest = next((group for group in reversed(groups) if group.before <= reader), None)
            if (wrong := _difference(step, value, latest, read)) is not None:
                yield op, wrong


def _difference(step: Step, value: int, group: CopyGroup | None, read: SSAValue) -> str | None:
    expected, index = _expected(step, value, group)
    actual, at = _source(read)
    if actual == expected and at == index:
        return None
    return f"{_words(step, value)}: the plan says {_named(expected)}, and it reads {_named(actual)}"


def _expected(step: Step, value: int, group: CopyGroup | None) -> tuple[Source, int]:
    original = step.value(value)
    if group is None or not isinstance(original, OpResult):
        return _source(original)
    number = dict(zip(group.operations, group.numbers, strict=True))[step.graph.maker[value]]
    return (_number(original.op, Names.ID), number), original.index


def _source(value: SSAValue) -> tuple[Source, int]:
    """What a value is, behind the tokens that delay it."""
    while isinstance(value, OpResult) and name_of(value.op) == "recompute.depend":
        value = value.op.operands[value.index]
    if isinstance(value, OpResult) and Names.COPY in value.op.attributes:
        return (_number(value.op, Names.ID), _number(value.op, Names.COPY)), value.index
    return value, 0


def _number(op: Operation, name: str) -> int:
    stated = op.attributes.get(name)
    return stated.value.data if isinstance(stated, IntegerAttr) else -1


def _words(step: Step, value: int) -> str:
    maker = step.graph.maker[value]
    return f"a value of {step.graph.names[maker]}" if maker >= 0 else "a value from outside"


def _named(source: Source) -> str:
    return f"copy {source[1]} of id {source[0]}" if isinstance(source, tuple) else "the original"
