"""What a report says of the storages of a timeline. Nothing here counts, and nothing that counts asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ...dialects.recompute import Names
from ...rules.names import name_of
from ..request.segments import find_segments
from ..step.phases import Phases


@dataclass(frozen=True)
class Buffer:
    """One storage, however many views it has. `first` and `last` are positions in program order, both inclusive."""

    label: str
    phase: str
    segment: str
    bytes: int
    first: int
    last: int
    recomputed: bool


@dataclass(frozen=True)
class Labels:
    """`segments`: of the operations that do not say theirs themselves."""

    phases: Phases | None = None
    segments: Mapping[Operation, str] = field(default_factory=dict[Operation, str])

    @classmethod
    def of(cls, phases: Phases | None) -> Labels:
        """With the segments that `segments=auto` finds."""
        return cls(phases, {} if phases is None else dict(find_segments(phases, "auto")))

    def buffer(self, op: Operation, size: int, first: int, last: int) -> Buffer:
        """The storage that the operation makes."""
        stated = op.attributes.get(Names.SEGMENT)
        return Buffer(
            label=name_of(op),
            phase="" if self.phases is None else self.phases.phase[op],
            segment=stated.data if isinstance(stated, StringAttr) else self.segments.get(op, ""),
            bytes=size,
            first=first,
            last=last,
            recomputed=Names.DUPLICATED in op.attributes,
        )
