"""What is to be recomputed, value by value, and the segments that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...dialects.recompute import Names
from ...rules.kinds import is_constant
from ...rules.names import name_of
from ...rules.permission import Permission
from ...rules.storage import viewed_operand
from ..step import Step

Segments = Mapping[Operation, str]


@dataclass(frozen=True)
class Wanted:
    """The `values` to recompute; and the segment of each operation that makes one or stands in a segment."""

    segments: Segments
    values: frozenset[SSAValue]

    def segment_of(self, value: SSAValue) -> str:
        return self.segments[_maker(value)]


def outputs_of(step: Step, wanted: Wanted) -> frozenset[SSAValue]:
    """Values that a forward operation outside of their segment reads."""
    return frozenset(
        value
        for value in wanted.values
        if any(
            step.phases.is_forward(reader) and wanted.segments.get(reader) != wanted.segment_of(value)
            for reader in step.phases.order.readers(value)
        )
    )


def possible(step: Step, wanted: Wanted, permission: Permission) -> Wanted:
    """What may be copied, and would not outlive the backward pass anyway."""
    allowed = {op for op in wanted.segments if not is_constant(op) and permission.why_not(op) is None}
    values = (v for v in wanted.values if v.owner in allowed and step.storages.of(v) not in step.lives_on)
    return Wanted(wanted.segments, frozenset(values))


def with_views(step: Step, wanted: Wanted) -> Wanted:
    """Add views and casts of what is recomputed, unless something else is said of them.

    Kept, they would pin what they show. They belong to the segment of the value that they look at.
    """
    segments, values = dict(wanted.segments), set(wanted.values)
    for op in step.phases.order.operations:
        source = _looks_at(op)
        if source not in values or not step.phases.is_forward(op) or not op.attributes.keys().isdisjoint(_SAID):
            continue
        assert source is not None, "None is no value"
        segment = segments[_maker(source)]
        if segments.setdefault(op, segment) == segment:
            values.update(op.results)
    return Wanted(segments, frozenset(values))


_SAID = frozenset({Names.RECOMPUTE, Names.CHECKPOINT})
_CASTS = frozenset("stablehlo.convert arith.extf arith.truncf arith.extsi arith.extui arith.trunci".split())


def _looks_at(op: Operation) -> SSAValue | None:
    return op.operands[0] if name_of(op) in _CASTS else viewed_operand(op)


def _maker(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation), "only results of operations are recomputed"
    return value.owner
