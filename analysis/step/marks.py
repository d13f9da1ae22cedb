"""User-given marks on operations, and the attributes of copies.

A mark is a `MarkKind` for each result of an operation, in the attribute `recompute.recompute`;
`dialects/result_marks.py` lists the forms of the attribute.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.mark_kind import MarkKind
from ...dialects.names import Names
from ...dialects.result_marks import entries_of, kind_of, marks_of
from ...support.operations import every_operation


def is_copy(op: Operation) -> bool:
    """Return whether the operation is a copy for the backward pass."""
    return Names.COPY in op.attributes and isinstance(op.attributes[Names.COPY], IntegerAttr)


def is_repeated_inside(op: Operation) -> bool:
    """Return whether another loop recomputes operations of this loop. In this case, the body of this loop contains
    originals of copies."""
    inside = every_operation(op)[1:] if op.regions else []
    return any(Names.ID in inner.attributes and not is_copy(inner) for inner in inside)


@dataclass(frozen=True)
class ChosenMark:
    """A mark that has been chosen for an operation, but is not yet written into its attributes.

    Attributes:
        segment: The segment of the operation; None to leave its segment attribute unchanged.
        recomputed: For each result, whether it is recomputed; None to leave the mark unchanged.
    """

    segment: str | None = None
    recomputed: tuple[bool, ...] | None = None


def mark_of(value: SSAValue) -> MarkKind | None:
    """Return the mark of a result; None for unmarked results and for arguments."""
    if not isinstance(value.owner, Operation):
        return None
    mark = value.owner.attributes.get(Names.RECOMPUTE)
    if isinstance(mark, ArrayAttr):
        marks = marks_of(value.owner)
        index = value.owner.results.index(value)
        return marks[index] if index < len(marks) else None
    return None if mark is None else kind_of(mark)


def with_kept(op: Operation, kept_values: Collection[SSAValue]) -> ArrayAttr[Attribute]:
    """Return the marks of an operation as a list with one entry per result, with `kept_values` marked as saved."""
    return ArrayAttr(
        BoolAttr.from_bool(False) if value in kept_values else entry
        for value, entry in zip(op.results, entries_of(op), strict=True)
    )


def is_to_recompute(value: SSAValue) -> bool:
    """Return whether the value is a result that is marked to be recomputed."""
    return (mark := mark_of(value)) is not None and mark.recomputes


def is_demanded(value: SSAValue) -> bool:
    """Return whether the mark of the result is `must_recompute`.

    If an unmarked operation reads such a result, and only the backward pass reads the results of this operation, it is
    recomputed too. A pass that writes decisions therefore marks the operations that it decided to keep; see
    `transforms/plans/kept_dependents.py`.
    """
    return mark_of(value) is MarkKind.MUST_RECOMPUTE


def asks_to_recompute(op: Operation) -> bool:
    """Return whether some result of the operation is marked to be recomputed."""
    return Names.RECOMPUTE in op.attributes and any(map(is_to_recompute, op.results))


def is_forced(op: Operation) -> bool:
    """Return whether the mark of some result is `must_recompute`, which applies even if it frees no memory."""
    return MarkKind.MUST_RECOMPUTE in marks_of(op)


def explicit_mark(op: Operation) -> bool | None:
    """Return True if the user's mark recomputes the operation, False if it keeps the operation, None if there is no
    mark."""
    marks = [mark for mark in marks_of(op) if mark is not None]
    return any(mark.recomputes for mark in marks) if marks else None
