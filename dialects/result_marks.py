"""Read and write the attribute `recompute.recompute`, which holds a mark for each result of an operation.

    {recompute.recompute = true}                        every result: must_recompute
    {recompute.recompute = "prefer_save"}               every result: the kind of that name
    {recompute.recompute = [false, "must_recompute"]}   one entry for each result
    {recompute.recompute = [false, unit]}               the second result has no mark

`true` means the same as `"must_recompute"`, and `false` means the same as `"must_save"`, alone or in a list. Passes
write their own decisions as `true` and `false` and the annotations of frameworks by name, but no pass distinguishes the
two spellings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from .mark_kind import MarkKind
from .names import Names

_MARK_KINDS = {kind.value: kind for kind in MarkKind}
# Operations share these, since xDSL verifies each attribute when it is constructed.
_FLAGS = {flag: BoolAttr.from_bool(flag) for flag in (False, True)}


def kind_of(mark: Attribute) -> MarkKind | None:
    """Return the kind of a mark that is not a list; None for `unit` and for invalid marks."""
    if isinstance(mark, IntegerAttr):
        return MarkKind.MUST_RECOMPUTE if mark.value.data else MarkKind.MUST_SAVE
    return _MARK_KINDS.get(mark.data) if isinstance(mark, StringAttr) else None


def entries_of(op: Operation) -> Sequence[Attribute]:
    """Return the marks of a marked operation as one entry for each result."""
    mark = op.attributes[Names.RECOMPUTE]
    return cast(ArrayAttr[Attribute], mark).data if isinstance(mark, ArrayAttr) else [mark] * len(op.results)


def marks_of(op: Operation) -> list[MarkKind | None]:
    """Return the mark of each result; None for results without a mark. Unmarked operations have an empty list."""
    return list(map(kind_of, entries_of(op))) if Names.RECOMPUTE in op.attributes else []


def has_only(op: Operation, kind: MarkKind) -> bool:
    """Return whether all results of the operation have the mark `kind`. An operation without results, such as some
    segments, has the mark as a whole."""
    if (mark := op.attributes.get(Names.RECOMPUTE)) is None:
        return False
    return kind_of(mark) is kind or set(marks_of(op)) == {kind}


def decided_mark(recomputed: Sequence[bool]) -> Attribute:
    """Return the attribute for a decision: a single mark if it is the same for all results, or a list.

    `recomputed`: for each result, whether it is recomputed or kept.
    """
    flags = [_FLAGS[flag] for flag in recomputed]
    return flags[0] if len(set(recomputed)) == 1 else ArrayAttr(flags)
