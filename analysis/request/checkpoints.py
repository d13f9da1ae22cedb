"""Segments between named values, by data flow: Paddle's `RecomputeOptimizer` with `checkpoints`.

    x -> a -> h0 -> b -> h1 -> c -> loss        checkpoints h0, h1: segments {a, h0} and {b, h1}; c is the tail

What leads to a checkpoint and to none before it is its segment: the part in front of the first checkpoint is one, each
of two parallel branches is one, the tail after the last checkpoint is none. The order in which checkpoints are named,
and naming one twice, mean nothing. Masks and local derivatives belong where the operation beside them does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches

from xdsl.ir import Operation, SSAValue

from ...options.selection import BadSelection
from ...support.diagnostics import Remark
from ..step.order import producers, read_values
from ..step.phases import Phases
from .names import is_named, named_by, names_of


class NoSuchCheckpoint(BadSelection):
    """A checkpoint that names no value of the forward pass."""

    def __init__(self, name: str, known: Iterable[str]):
        close = get_close_matches(name, list(known), n=1)
        hint = f"; did you mean '{close[0]}'?" if close else "; name forward values, such as %h0 or attn/tanh"
        super().__init__(f"checkpoint '{name}' names no operation of the forward pass{hint}")


@dataclass(frozen=True)
class Segments:
    """The segment of each operation that is in one; the checkpoints, which are kept; what was ignored, and why."""

    segment: Mapping[Operation, str]
    kept: frozenset[SSAValue]
    remarks: tuple[Remark, ...]


def segments_between(phases: Phases, checkpoints: Sequence[str]) -> Segments:
    """Cut the forward pass at the checkpoints. Raises `NoSuchCheckpoint`."""
    found = dict[Operation, list[SSAValue]]()
    remarks = list[Remark]()
    for name, values in named_values(phases, checkpoints).items():
        if not values and (why := _why_ignored(phases, name)) is not None:
            remarks.append(Remark(phases.order.operations[0], f"checkpoint '{name}' is ignored: {why}"))
        elif not values:
            raise NoSuchCheckpoint(name, _known(phases))
        for value in values:
            assert isinstance(value.owner, Operation), "arguments are no named values"
            found.setdefault(value.owner, []).append(value)
    kept = frozenset(value for values in found.values() for value in values)
    segment = _segments(phases, sorted(found, key=phases.order.position.__getitem__))
    _add_companions(phases, segment, kept)
    return Segments(
        {op: f"segment{number}" for op, number in sorted_by_position(phases, segment)}, kept, tuple(remarks)
    )


def sorted_by_position(phases: Phases, segment: Mapping[Operation, int]) -> list[tuple[Operation, int]]:
    return sorted(segment.items(), key=lambda item: phases.order.position[item[0]])


def named_values(phases: Phases, names: Iterable[str]) -> dict[str, list[SSAValue]]:
    """The forward values of each name: results by their SSA names, otherwise all results of operations."""
    forward = [op for op in phases.order.operations if phases.is_forward(op)]
    exact = dict[str | None, list[SSAValue]]()
    for op in forward:
        for result in op.results:
            exact.setdefault(result.name_hint, []).append(result)
    return {
        name: exact.get(name.removeprefix("%")) or [result for op in operations for result in op.results]
        for name, operations in named_by(forward, names).items()
    }


def _why_ignored(phases: Phases, name: str) -> str | None:
    """Why a name that exists can be no checkpoint."""
    bare = name.removeprefix("%")
    if any(argument.name_hint == bare for argument in phases.order.block.args):
        return "it is an argument of the function, which is there anyway"
    for op in phases.order.operations:
        if any(is_named(inner, [name]) for inner in op.walk() if inner is not op):
            return "it is made inside the region of an operation; name the result of that operation"
        if not phases.is_forward(op) and is_named(op, [name]):
            return "it is made in the backward pass"
    return None


def _known(phases: Phases) -> list[str]:
    return [name for op in phases.order.operations if phases.is_forward(op) for name in names_of(op)]


def _segments(phases: Phases, checkpoints: Sequence[Operation]) -> dict[Operation, int]:
    """What leads to each checkpoint, without what leads to an earlier one."""
    segment = dict[Operation, int]()
    for number, checkpoint in enumerate(checkpoints):
        stack = [checkpoint]
        while stack:
            op = stack.pop()
            if op not in segment and op in phases.order.position:
                segment[op] = number
                stack.extend(producers(op))
    return segment


def _add_companions(phases: Phases, segment: dict[Operation, int], kept: Set[SSAValue]) -> None:
    """Operations that only the backward pass reads join the operation that reads the same values, or makes theirs.

    What reads a checkpoint alone does not belong to what made it: there the next segment begins, or the tail.
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
        if op in only_backward and (number := _beside(phases, op, segment, only_backward, kept)) is not None:
            segment[op] = number


def _beside(
    phases: Phases, op: Operation, segment: Mapping[Operation, int], only_backward: Set[Operation], kept: Set[SSAValue]
) -> int | None:
    order = phases.order
    beside = [
        reader
        for operand in op.operands
        for reader in order.readers(operand)
        if phases.is_forward(reader) and reader not in only_backward
    ]
    if beside:
        nearest = min(beside, key=lambda reader: abs(order.position[reader] - order.position[op]))
        return segment.get(nearest)
    made = [owner for value in read_values(op) if value not in kept and (owner := value.owner) in segment]
    return max((segment[owner] for owner in made if isinstance(owner, Operation)), default=None)
