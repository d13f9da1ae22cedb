"""Entries of a segment that know nothing of each other, as of a layer run on two inputs, and when they are due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from xdsl.ir import Operation, SSAValue

from ...rules.names import name_of
from ..order import read_values
from ..step import Step


def later_parts(step: Step, needs: Mapping[Operation, int], is_inside: Callable[[Operation], bool]) -> Iterator[int]:
    """Where the later entries of a segment are first needed, if all that was needed before them has been read by then.

    `needs`: for each operation whose copy is needed, where that is first. An entry needs copies of the same operations
    as the one before it: parts of one entry that happen to be unconnected stay together.
    """
    entry, used_up = Counter[str](), -1
    for part in sorted(_parts(step, needs, is_inside), key=lambda part: min(map(needs.__getitem__, part))):
        start, names = min(needs[op] for op in part), Counter(map(name_of, part))
        if used_up == -1:
            entry = names
        elif names == entry and start > used_up:
            yield start
        used_up = max(used_up, _last_read(step, part))


def _parts(
    step: Step, needs: Mapping[Operation, int], is_inside: Callable[[Operation], bool]
) -> Iterable[list[Operation]]:
    """The operations of `needs`, those together that values connect."""
    leader = _leaders(step, needs, is_inside)
    parts = dict[Operation, list[Operation]]()
    for op in needs:
        parts.setdefault(_leader(leader, op), []).append(op)
    return parts.values()


def _leaders(
    step: Step, needs: Mapping[Operation, int], is_inside: Callable[[Operation], bool]
) -> dict[Operation, Operation]:
    """For each operation inside another one that it is connected with, up to one that leads itself.

    Values of other segments connect their readers; arguments connect nothing, since every entry has the same weights.
    """
    order = step.phases.order
    positions = [order.position[op] for op in needs]
    leader = dict[Operation, Operation]()
    reader = dict[SSAValue, Operation]()
    for op in order.operations[min(positions) : max(positions) + 1] if positions else ():
        if is_inside(op):
            leader[op] = op
            for value in read_values(op):
                other = value.owner
                if isinstance(other, Operation) and other not in leader:
                    other = reader.setdefault(value, op)
                if isinstance(other, Operation):
                    leader[_leader(leader, other)] = op
    return leader


def _leader(leader: dict[Operation, Operation], op: Operation) -> Operation:
    """The operation that stands for everything connected with `op`; ways are halved for whoever asks next."""
    while (above := leader[op]) is not op:
        leader[op] = leader[above]
        op = above
    return op


def _last_read(step: Step, operations: Iterable[Operation]) -> int:
    order = step.phases.order
    readers = (reader for op in operations for result in op.results for reader in order.readers(result))
    return max((order.position[reader] for reader in readers if step.phases.is_gradient(reader)), default=-1)
