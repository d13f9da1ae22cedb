"""User-given marks on operations, and the attributes of copies.

A mark is a `MarkKind` for each result of an operation, in the attribute `recompute.recompute`:

    {recompute.recompute = true}                        every result: must_recompute
    {recompute.recompute = "prefer_save"}               every result: the kind of that name
    {recompute.recompute = [false, "must_recompute"]}   one entry for each result
    {recompute.recompute = [false, unit]}               the second result has no mark
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.mark_kind import MarkKind
from ...dialects.names import Names
from ...support.operations import every_operation

_MARK_KINDS = {kind.value: kind for kind in MarkKind}


def is_copy(op: Operation) -> bool:
    """Return whether the operation is a copy for the backward pass."""
    return Names.COPY in op.attributes and isinstance(op.attributes[Names.COPY], IntegerAttr)


def is_repeated_inside(op: Operation) -> bool:
    """Return whether another loop recomputes operations of this loop, whose body then contains originals of copies."""
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
        marks = cast(ArrayAttr[Attribute], mark).data
        index = value.owner.results.index(value)
        return _kind(marks[index]) if index < len(marks) else None
    return None if mark is None else _kind(mark)


def with_kept(op: Operation, kept_values: Collection[SSAValue]) -> ArrayAttr[Attribute]:
    """Return the marks of an operation as a list with one entry per result, with `kept_values` marked as saved."""
    mark = op.attributes[Names.RECOMPUTE]
    entries = cast(ArrayAttr[Attribute], mark).data if isinstance(mark, ArrayAttr) else [mark] * len(op.results)
    return ArrayAttr(
        BoolAttr.from_bool(False) if value in kept_values else entry
        for value, entry in zip(op.results, entries, strict=True)
    )


def _kind(mark: Attribute) -> MarkKind | None:
    if isinstance(mark, IntegerAttr):
        return MarkKind.MUST_RECOMPUTE if mark.value.data else MarkKind.MUST_SAVE
    return _MARK_KINDS.get(mark.data) if isinstance(mark, StringAttr) else None


def is_to_recompute(value: SSAValue) -> bool:
    """Return whether the value is a result that is marked to be recomputed."""
    return (mark := mark_of(value)) is not None and mark.recomputes


def is_demanded(value: SSAValue) -> bool:
    """Return whether the mark of the result is `must_recompute`.

    Operations that read such a result are then also recomputed if only the backward pass reads their results.
    """
    op = value.owner
    if not isinstance(op, Operation) or (mark := op.attributes.get(Names.RECOMPUTE)) is None:
        return False
    if isinstance(mark, ArrayAttr):
        mark = cast(ArrayAttr[Attribute], mark).data[op.results.index(value)]
    return isinstance(mark, StringAttr) and mark.data == MarkKind.MUST_RECOMPUTE


def asks_to_recompute(op: Operation) -> bool:
    """Return whether some result of the operation is marked to be recomputed."""
    return Names.RECOMPUTE in op.attributes and any(map(is_to_recompute, op.results))


def is_forced(op: Operation) -> bool:
    """Return whether the mark of some result is `must_recompute`. This mark applies even if it saves no memory."""
    return Names.RECOMPUTE in op.attributes and any(mark_of(result) is MarkKind.MUST_RECOMPUTE for result in op.results)


def explicit_mark(op: Operation) -> bool | None:
    """Return True if the user's mark recomputes the operation, False if it keeps the operation, None without a mark."""
    if Names.RECOMPUTE not in op.attributes:
        return None
    marks = [mark for result in op.results if (mark := mark_of(result)) is not None]
    return any(mark.recomputes for mark in marks) if marks else None
