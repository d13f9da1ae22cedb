"""When the backward pass first needs each value, and which parts of a segment it needs at different times."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import accumulate

from xdsl.ir import Operation, SSAValue

from ..order import producers
from ..step import Step
from .parts import later_parts


def first_needs(step: Step, operations: Iterable[Operation], values: Collection[SSAValue]) -> dict[Operation, int]:
    """For each operation the position of the first gradient operation that needs a copy of it.

    Either a gradient operation reads one of its `values`, or the copy of another of the `operations` does. Operations
    that nobody needs are left out; the others are in program order.
    """
    order = step.phases.order
    needs = dict[Operation, int]()
    for op in sorted(operations, key=order.position.__getitem__, reverse=True):
        found = list[int]()
        for value in op.results:
            if value in values:
                for reader in order.readers(value):
                    if step.phases.is_gradient(reader):
                        found.append(order.position[reader])
                    elif reader in needs:
                        found.append(needs[reader])
        if found:
            needs[op] = min(found)
    return dict(reversed(needs.items()))


def arrivals(step: Step, needs: Mapping[Operation, int], is_inside: Callable[[Operation], bool]) -> list[int]:
    """The positions at which the entries of a segment are first needed.

    Where a way leads out of a segment and back into it, through other forward operations, the segment is entered twice,
    and the cotangent of the first entry depends on the gradients of the second: one barrier over both would be a cycle,
    and copies of both would be held while the backward pass works on what lies between. Entries that know nothing of
    each other are apart too, where the backward pass is done with one before it comes to the next.
    """
    first = dict[int, int]()
    for op, entry in _entries(step, needs, is_inside).items():
        first[entry] = min(first.get(entry, needs[op]), needs[op])
    return _after_their_originals(step, needs, {*first.values(), *later_parts(step, needs, is_inside)})


def _after_their_originals(step: Step, needs: Mapping[Operation, int], starts: set[int]) -> list[int]:
    """Where one gradient follows another, what is computed after an arrival is needed in a later one."""
    position, found = step.phases.order.position, sorted(starts)
    operations = sorted(needs, key=position.__getitem__)
    # What an operation or a later one is needed for comes after the operation itself.
    soonest = list(accumulate((needs[op] for op in reversed(operations)), min))
    for op, need in zip(operations, reversed(soonest), strict=True):
        if found[bisect_right(found, needs[op]) - 1] < position[op]:
            insort(found, need)
    return found


def _entries(
    step: Step, needs: Mapping[Operation, int], is_inside: Callable[[Operation], bool]
) -> dict[Operation, int]:
    """How often a way from the segment's first operations to each of its operations leaves it and comes back."""
    order = step.phases.order
    positions = [order.position[op] for op in needs]
    entry, again = dict[Operation, int](), dict[Operation, int]()
    for op in order.operations[min(positions) : max(positions) + 1] if positions else ():
        if is_inside(op):
            entry[op] = max((entry.get(one, again.get(one, 0)) for one in producers(op)), default=0)
            again[op] = entry[op] + 1
        else:
            again[op] = max((again.get(one, 0) for one in producers(op)), default=0)
    return {op: entry[op] for op in needs}
