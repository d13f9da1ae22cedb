"""Labels of the storages of a timeline, for reports only; the byte counts do not depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.recompute import Names
from ...rules.names import name_of
from ...support.locations import source_position
from ...support.type_guards import is_tensor
from ..request.segments import find_segments
from ..step.jax_paths import path_of, scope_of
from ..step.phases import Phases


@dataclass(frozen=True)
class Buffer:
    """One storage with all of its views. `first` and `last` are positions in program order, both inclusive.

    `name` and `source`: as in `value_name` and `source_of`; `module`: as in `module_of`; `type`: as in `type_text`; ""
    if unknown.
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
    module: str = ""
    type: str = ""


@dataclass(frozen=True)
class Labels:
    """Phases and segments for labels. `segments`: the segments of operations without a segment attribute."""

    phases: Phases | None = None
    segments: Mapping[Operation, str] = field(default_factory=dict[Operation, str])

    @classmethod
    def of(cls, phases: Phases | None) -> Labels:
        """Labels with the segments of `segments=auto`."""
        return cls(phases, {} if phases is None else dict(find_segments(phases, "auto")))

    def buffer(self, op: Operation, size: int, first: int, last: int, value: SSAValue | None = None) -> Buffer:
        """The label of a storage that the operation makes; `value`: the result, if known."""
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
            module=module_of(op),
            type=type_text(value or op.results[0]) if op.results else "",
        )

    def segment_of(self, op: Operation) -> str:
        """The segment in the attribute of the operation, else in `segments`; "" outside of segments."""
        stated = op.attributes.get(Names.SEGMENT)
        return stated.data if isinstance(stated, StringAttr) else self.segments.get(op, "")


def value_name(op: Operation, value: SSAValue | None = None) -> str:
    """The name of the value in the model (`recompute.name`), else its SSA name (`%h`), else the location's path."""
    stated = op.attributes.get(Names.NAME)
    if isinstance(stated, StringAttr):
        return stated.data
    hint = (value or op.results[0]).name_hint if op.results else None
    return f"%{hint}" if hint is not None else path_of(op.location)


def source_of(op: Operation) -> str:
    """`file:line:col` from the location of the operation; "" if it has none."""
    position = source_position(op.location)
    return "" if position is None else ":".join(map(str, position))


def module_of(op: Operation) -> str:
    """The named scopes of the operation, joined by slashes: `LM/Block_0/Dense_1`; "" outside of scopes."""
    return "/".join(scope_of(op.location).path)


def type_text(value: SSAValue) -> str:
    """The type of a tensor as `f32[256,64]`; other types as in MLIR."""
    if not is_tensor(value.type):
        return str(value.type)
    shape = ["?" if size < 0 else str(size) for size in value.type.get_shape()]
    return f"{value.type.get_element_type()}[{','.join(shape)}]"


def described(op: Operation) -> str:
    """The operation, its result and its source: `stablehlo.tanh %h (train.py:41:9)`; unknown parts are left out."""
    words = [name_of(op), value_name(op), f"({source_of(op)})" if source_of(op) else ""]
    return " ".join(filter(None, words))
