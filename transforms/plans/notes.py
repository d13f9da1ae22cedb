"""Convert the attributes that `recompute-mark` writes to the `OperationNote`s of a plan file, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation

from ...analysis.step.step import Step
from ...dialects.names import Names
from ...planning.plan_file import Mark, OperationNote

_NOTED = (Names.SEGMENT, Names.RECOMPUTE, Names.CHECKPOINT)


NO_CHANGES: Mapping[Operation, Mapping[str, Attribute]] = {}


def notes_of(step: Step, changed: Mapping[Operation, Mapping[str, Attribute]] = NO_CHANGES) -> Iterator[OperationNote]:
    """Yield a note for each operation with a segment, mark or checkpoint attribute.

    `changed`: for some operations, the attributes to read instead of their current ones; see `marked_attributes`.
    """
    for number, op in enumerate(step.numbered.operations):
        attributes = changed.get(op, op.attributes)
        if any(name in attributes for name in _NOTED):
            segment, mark = attributes.get(Names.SEGMENT), attributes.get(Names.RECOMPUTE)
            yield OperationNote(
                number,
                segment.data if isinstance(segment, StringAttr) else None,
                None if mark is None else _as_data(mark),
                Names.CHECKPOINT in attributes,
            )


def write_notes(step: Step, notes: Iterable[OperationNote]) -> None:
    """Write the notes as attributes, replacing all segment, mark and checkpoint attributes of the step."""
    for op in step.numbered.operations:
        for name in _NOTED:
            op.attributes.pop(name, None)
    for note in notes:
        attributes = step.operation(note.operation).attributes
        if note.segment is not None:
            attributes[Names.SEGMENT] = StringAttr(note.segment)
        if note.recompute is not None:
            attributes[Names.RECOMPUTE] = _as_attribute(note.recompute)
        if note.checkpoint:
            attributes[Names.CHECKPOINT] = UnitAttr()


def _as_data(mark: Attribute) -> Mark | tuple[Mark, ...]:
    if isinstance(mark, ArrayAttr):
        return tuple(_single_as_data(element) for element in cast(ArrayAttr[Attribute], mark).data)
    return _single_as_data(mark)


def _single_as_data(mark: Attribute) -> Mark:
    if isinstance(mark, IntegerAttr):
        return bool(mark.value.data)
    assert isinstance(mark, StringAttr), "marks were verified"
    return mark.data


def _as_attribute(mark: Mark | tuple[Mark, ...]) -> Attribute:
    if isinstance(mark, tuple):
        return ArrayAttr([_as_attribute(element) for element in mark])
    return StringAttr(mark) if isinstance(mark, str) else BoolAttr.from_bool(mark)
