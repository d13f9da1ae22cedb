"""What a report says of the storages of a timeline. Nothing here counts, and nothing that counts asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.recompute import Names
from ...rules.names import name_of
from ...support.locations import source_position
from ..request.segments import find_segments
from ..step.jax_paths import path_of
from ..step.phases import Phases


@dataclass(frozen=True)
class Buffer:
    """One storage, however many views it has. `first` and `last` are positions in program order, both inclusive.

    `name` and `source`: as `value_name` and `source_of` say them, "" where the program does not.
    """

    label: str
    phase: str
    segment: str
    bytes: int
    first: int
    last: int
    recomputed: bool
    name: str = ""
    source: str = ""


@dataclass(frozen=True)
class Labels:
    """`segments`: of the operations that do not say theirs themselves."""

    phases: Phases | None = None
    segments: Mapping[Operation, str] = field(default_factory=dict[Operation, str])

    @classmethod
    def of(cls, phases: Phases | None) -> Labels:
        """With the segments that `segments=auto` finds."""
        return cls(phases, {} if phases is None else dict(find_segments(phases, "auto")))

    def buffer(self, op: Operation, size: int, first: int, last: int, value: SSAValue | None = None) -> Buffer:
        """The storage that the operation makes; `value`: which result it is, where that is known."""
        return Buffer(
            label=name_of(op),
            phase="" if self.phases is None else self.phases.phase[op],
            segment=self.segment_of(op),
            bytes=size,
            first=first,
            last=last,
            recomputed=Names.DUPLICATED in op.attributes,
            name=value_name(op, value),
            source=source_of(op),
        )

    def segment_of(self, op: Operation) -> str:
        """What the operation says itself, else what was found; "" outside of all."""
        stated = op.attributes.get(Names.SEGMENT)
        return stated.data if isinstance(stated, StringAttr) else self.segments.get(op, "")


def value_name(op: Operation, value: SSAValue | None = None) -> str:
    """What the model calls the value (`recompute.name`), else the program (`%h`), else the path of the location."""
    stated = op.attributes.get(Names.NAME)
    if isinstance(stated, StringAttr):
        return stated.data
    hint = (value or op.results[0]).name_hint if op.results else None
    return f"%{hint}" if hint is not None else path_of(op.location)


def source_of(op: Operation) -> str:
    """`file:line:col` as the operation's own location says it."""
    position = source_position(op.location)
    return "" if position is None else ":".join(map(str, position))


def described(op: Operation) -> str:
    """The operation and its result: `stablehlo.tanh %h (train.py:41:9)`, as far as the program says."""
    words = [name_of(op), value_name(op), f"({source_of(op)})" if source_of(op) else ""]
    return " ".join(filter(None, words))
