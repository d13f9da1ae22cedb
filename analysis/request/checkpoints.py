"""Checkpoints: named values that divide the forward pass into segments by data flow, as in Paddle's
`RecomputeOptimizer`.

    x -> a -> h0 -> b -> h1 -> c -> loss        checkpoints h0, h1: segments {a, h0} and {b, h1}; c is the tail

The segment of a checkpoint consists of the operations on which this checkpoint depends, but no earlier one does.
Therefore, the operations before the first checkpoint form a segment, and two parallel branches that end in checkpoints
form two segments. The tail after the last checkpoint is in no segment. The names may be given in any order, and may be
repeated. Masks and local derivatives join the segment of the forward operation that reads the same values.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.names import Names
from ...options.selection import BadSelection, Selection
from ...planning.by_segment.numbered_segments import numbered_segment
from ...support.diagnostics import BadRequest
from ...support.remarks import Remark
from ...support.suggestions import close_name, did_you_mean
from ..step.order import functions_of, producers, read_values
from ..step.phases import Phases
from .value_names import given_names, is_named, matches_of, names_of


def stated_checkpoints(function: FuncOp) -> list[str]:
    """Return the names of the checkpoints that the function's attribute lists."""
    stated = function.attributes.get(Names.CHECKPOINTS)
    entries = cast(ArrayAttr[Attribute], stated) if isinstance(stated, ArrayAttr) else [stated]
    return [name.data for name in entries if isinstance(name, StringAttr)]


def with_stated_checkpoints(module: ModuleOp, selection: Selection) -> tuple[Selection, list[Remark]]:
    """Add to the selection the checkpoints that attributes of the module's functions list.

    A selection that gives segments or checkpoints itself takes precedence, and is returned unchanged with a remark.
    """
    stating = [function for function in functions_of(module) if stated_checkpoints(function)]
    if not stating:
        return selection, []
    if selection.segments != "auto" or selection.checkpoints is not None:
        return selection, [Remark(stating[0], OVERRIDDEN)]
    names = dict.fromkeys(name for function in stating for name in stated_checkpoints(function))
    return replace(selection, checkpoints=tuple(names)), []


OVERRIDDEN = "the checkpoints in the attributes of the step are ignored, because the options define its segments"


_MAX_EXAMPLES = 3
"""The maximum number of values that a message about an unknown checkpoint lists."""


class NoSuchCheckpoint(BadSelection):
    """Raised for a checkpoint whose name matches no value of the forward pass."""

    def __init__(self, name: str, hint: str):
        self.name = name
        super().__init__(f"checkpoint '{name}' names no operation of the forward pass{hint}")


@contextmanager
def reported_where_stated(module: ModuleOp) -> Generator[None]:
    """Report a refused checkpoint at the function whose attribute lists it, if there is such a function. Without this
    context, the error may be reported at another function, because the checkpoints of all functions apply to the whole
    module."""
    try:
        yield
    except BadRequest as error:
        cause = error.__cause__
        names = [cause.name] if isinstance(cause, NoSuchCheckpoint) else []
        for function in functions_of(module):
            if any(name in stated_checkpoints(function) for name in names):
                raise BadRequest(function, error.reason) from cause
        raise


@dataclass(frozen=True)
class Segments:
    """The division of a forward pass into segments by checkpoints.

    Attributes:
        segment: The segment of each operation that is in a segment.
        kept: The checkpoint values, which are saved.
        remarks: One remark per ignored checkpoint.
    """

    segment: Mapping[Operation, str]
    kept: frozenset[SSAValue]
    remarks: tuple[Remark, ...]


def segments_between(phases: Phases, checkpoints: Sequence[str]) -> Segments:
    """Divide the forward pass at the checkpoints.

    Raises:
        NoSuchCheckpoint: A checkpoint names no value of the forward pass.
    """
    values_of_op = dict[Operation, list[SSAValue]]()
    remarks = list[Remark]()
    for name, values in named_values(phases, checkpoints).items():
        if not values and (reason := _why_ignored(phases, name)) is not None:
            remarks.append(Remark(phases.order.operations[0], f"checkpoint '{name}' is ignored: {reason}"))
        elif not values:
            raise NoSuchCheckpoint(name, _hint_for(name, phases))
        for value in values:
            assert isinstance(value.owner, Operation), "named values are results of operations"
            values_of_op.setdefault(value.owner, []).append(value)
    kept_values = frozenset(value for values in values_of_op.values() for value in values)
    segment = _segments(phases, sorted(values_of_op, key=phases.order.position.__getitem__))
    _add_companions(phases, segment, kept_values)
    return Segments(
        {op: numbered_segment(number) for op, number in sorted_by_position(phases, segment)},
        kept_values,
        tuple(remarks),
    )


def sorted_by_position(phases: Phases, segment: Mapping[Operation, int]) -> list[tuple[Operation, int]]:
    """Return the segment of each operation, in program order."""
    return sorted(segment.items(), key=lambda item: phases.order.position[item[0]])


def named_values(phases: Phases, names: Iterable[str]) -> dict[str, list[SSAValue]]:
    """Map each name to the forward values that it denotes: the results with this SSA name or, if there are none, all
    results of the operations that the name matches."""
    forward = [op for op in phases.order.operations if phases.is_forward(op)]
    exact = dict[str | None, list[SSAValue]]()
    for op in forward:
        for result in op.results:
            exact.setdefault(result.name_hint, []).append(result)
    return {
        name: exact.get(name.removeprefix("%")) or [result for op in operations for result in op.results]
        for name, operations in matches_of(forward, names).items()
    }


def _why_ignored(phases: Phases, name: str) -> str | None:
    """Return the reason that a value with this name cannot be a checkpoint; None if there is no such value."""
    bare = name.removeprefix("%")
    if any(argument.name_hint == bare for argument in phases.order.block.args):
        return "it is an argument of the function, which is always live"
    for op in phases.order.operations:
        if any(is_named(inner, [name]) for inner in op.walk() if inner is not op):
            return "it is defined inside a region; name a result of the operation that contains the region"
        if not phases.is_forward(op) and is_named(op, [name]):
            return "it is computed in the backward pass"
    return None


def _hint_for(name: str, phases: Phases) -> str:
    """Return a hint for a checkpoint whose name matches no value.

    The hint proposes a value in the scope with the closest name. If no scope has a similar name, it proposes the value
    with the closest name. If no value has a similar name either, it lists some existing values.
    """
    forward = [op for op in phases.order.operations if phases.is_forward(op)]
    names = list(dict.fromkeys(name for op in forward for name in names_of(op)))
    last_in_scope = {path.partition("/")[0]: path for path in names if "/" in path}
    close = close_name(name, [*(other for other in names if "/" not in other), *last_in_scope])
    if close in last_in_scope and "/" not in name:
        return f"; '{close}' is a scope: name a value in it, such as '{last_in_scope[close]}'"
    if hint := did_you_mean(name, names):
        return hint
    examples = list(dict.fromkeys(name for op in forward for name in given_names(op)))
    examples = examples or list(last_in_scope.values()) or names
    return f"; name values of the forward pass, such as {', '.join(map(repr, examples[:_MAX_EXAMPLES]))}"


def _segments(phases: Phases, checkpoints: Sequence[Operation]) -> dict[Operation, int]:
    """Map each operation to the index of the first checkpoint that depends on it."""
    segment = dict[Operation, int]()
    for number, checkpoint in enumerate(checkpoints):
        stack = [checkpoint]
        while stack:
            op = stack.pop()
            if op not in segment and op in phases.order.position:
                segment[op] = number
                stack.extend(producers(op))
    return segment


def _add_companions(phases: Phases, segment: dict[Operation, int], kept_values: Set[SSAValue]) -> None:
    """Assign a segment to each forward operation that only the backward pass reads.

    The operation joins the segment of another forward operation that reads the same operands. If there is no such
    operation, it joins the segment that computes its operands. An operation that reads only checkpoints does not join
    the segments that end at these checkpoints, because it belongs to the next segment or to the tail.
    """
    order = phases.order
    only_backward = set[Operation]()
    for op in reversed(order.operations):
        readers = [reader for result in op.results for reader in order.readers(result)]
        if not phases.is_forward(op) or op in segment or not readers:
            continue
        if all(phases.is_gradient(reader) or reader in only_backward for reader in readers):
            only_backward.add(op)
    for op in order.operations:
        if op not in only_backward:
            continue
        if (number := _companion_segment(phases, op, segment, only_backward, kept_values)) is not None:
            segment[op] = number


def _companion_segment(
    phases: Phases,
    op: Operation,
    segment: Mapping[Operation, int],
    only_backward: Set[Operation],
    kept_values: Set[SSAValue],
) -> int | None:
    order = phases.order
    readers = [
        reader
        for operand in op.operands
        for reader in order.readers(operand)
        if phases.is_forward(reader) and reader not in only_backward
    ]
    if readers:
        nearest = min(readers, key=lambda reader: abs(order.position[reader] - order.position[op]))
        return segment.get(nearest)
    makers = [owner for value in read_values(op) if value not in kept_values and (owner := value.owner) in segment]
    return max((segment[owner] for owner in makers if isinstance(owner, Operation)), default=None)
