"""Select the operations in loop bodies that may be recomputed. The segments, marks and policies are the same as outside
loops."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.names import Names
from ...options.selection import Selection
from ...rules.effects import is_cast, is_constant
from ...support.operations import every_operation, name_of
from ...support.type_guards import is_tensor
from ..step.exchanges import why_not_repeatable
from ..step.jax_paths import scope_of
from ..step.marks import asks_to_recompute, mark_of
from .op_chains import operations_saved_by, parse_chain
from .policies import policy_of
from .value_names import is_named


def repetition_predicate(root: Operation, selection: Selection) -> Callable[[Operation], bool]:
    """Return a predicate that tells whether an operation in a loop body may be recomputed.

    `root`: the operation that contains the loops.

    Raises:
        UnknownPolicy: The selection names a policy that does not exist.
    """
    operations = every_operation(root)
    is_chosen = _in_selection(operations, selection)
    policy = policy_of(selection)
    excluded = {op for text in selection.exclude for op in operations_saved_by(parse_chain(text), operations)}

    def may_repeat(op: Operation) -> bool:
        if any(map(_is_kept, every_operation(op))):
            return False
        if why_not_repeatable(op, selection.permission) is not None or op in excluded:
            return False
        if asks_to_recompute(op):
            return True
        return is_chosen(op) and not policy(op, selection.names) and not is_named(op, selection.save)

    return may_repeat


def is_recomputed_whole(op: Operation, selection: Selection) -> bool:
    """Return whether the selection or an attribute puts the whole loop in a named segment, so that it is recomputed as
    one operation."""
    if Names.SEGMENT in op.attributes:
        return True
    if selection.segments in ("auto", "none") or selection.checkpoints is not None:
        return False
    return any(_matches(path, selection.segments) for path in _paths(op))


def _is_kept(op: Operation) -> bool:
    return any(mark is not None and not mark.recomputes for mark in map(mark_of, op.results))


def _in_selection(operations: list[Operation], selection: Selection) -> Callable[[Operation], bool]:
    """Return a predicate that tells whether an operation is in a segment of the selection.

    With `auto`, if any operation has a segment attribute, operations without this attribute are in no segment.
    """
    pattern = selection.segments
    if selection.checkpoints is not None:
        return _never
    if pattern == "auto" and not any(Names.SEGMENT in op.attributes for op in operations):
        return _always
    if pattern in ("auto", "none"):
        return lambda op: Names.SEGMENT in op.attributes or _is_cheap(op)
    return lambda op: _is_cheap(op) or any(_matches(path, pattern) for path in _paths(op))


def _always(op: Operation) -> bool:
    return True


def _never(op: Operation) -> bool:
    return False


def _is_cheap(op: Operation) -> bool:
    """Return whether the operation is cheap enough to be repeated with its readers: a cast, a constant, a slice, a
    broadcast, or an operation with scalar results."""
    return is_constant(op) or is_cast(op) or name_of(op) in _SHAPES or all(map(_is_number, op.results))


_SHAPES = frozenset({"stablehlo.dynamic_slice", "stablehlo.slice", "stablehlo.broadcast_in_dim"})


def _is_number(value: SSAValue) -> bool:
    return is_tensor(value.type) and not value.type.get_shape()


def _paths(op: Operation) -> list[tuple[str, ...]]:
    stated = op.attributes.get(Names.SEGMENT)
    return [scope_of(op.location).path, tuple(stated.data.split("/")) if isinstance(stated, StringAttr) else ()]


def _matches(path: tuple[str, ...], pattern: str) -> bool:
    return any(fnmatchcase("/".join(path[:n]), pattern) or fnmatchcase(path[n - 1], pattern) for n in _depths(path))


def _depths(path: tuple[str, ...]) -> range:
    return range(1, len(path) + 1)
