"""Write the attributes for marks, names and checkpoints, and combine them with existing attributes."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ...analysis.request.checkpoints import stated_checkpoints
from ...analysis.request.value_names import given_names
from ...analysis.step.marks import mark_of
from ...dialects.names import Names


def mark_result(value: SSAValue, mark: Attribute) -> None:
    """Mark one result of an operation, unless it already has a mark.

    A call always gets a list with a mark for each result, because a single mark would apply to all operations of the
    callee.
    """
    op = value.owner
    assert isinstance(op, Operation), "results of operations are marked"
    if mark_of(value) is not None:
        return
    if len(op.results) == 1 and not isinstance(op, CallOp):
        op.attributes[Names.RECOMPUTE] = mark
        return
    entries = [*cast(ArrayAttr[Attribute], op.attributes.get(Names.RECOMPUTE, _no_marks(op)))]
    entries[op.results.index(value)] = mark
    op.attributes[Names.RECOMPUTE] = ArrayAttr(entries)


def _no_marks(op: Operation) -> ArrayAttr[Attribute]:
    return ArrayAttr([UnitAttr()] * len(op.results))


def propagate_names(holder: Operation, values: Iterable[SSAValue], inside: Container[Operation]) -> None:
    """Transfer the names of a call or a segment to the operations that compute its results after inlining.

    Args:
        holder: The call or the segment.
        values: The values that replace the results of `holder` after inlining.
        inside: The inlined operations. Other operations get no name.
    """
    if not (names := given_names(holder)):
        return
    for owner in dict.fromkeys(value.owner for value in values):
        if isinstance(owner, Operation) and owner in inside:
            add_names(owner, names)


def add_names(op: Operation, names: Iterable[str]) -> None:
    """Prepend names to the existing names of an operation."""
    attributes = [StringAttr(name) for name in dict.fromkeys((*names, *given_names(op)))]
    op.attributes[Names.NAME] = attributes[0] if len(attributes) == 1 else ArrayAttr(attributes)


def add_checkpoints(function: FuncOp, names: list[str]) -> None:
    """Append names to the checkpoints in the function's attribute `recompute.checkpoints`."""
    checkpoints = dict.fromkeys([*stated_checkpoints(function), *names])
    function.attributes[Names.CHECKPOINTS] = ArrayAttr(map(StringAttr, checkpoints))
