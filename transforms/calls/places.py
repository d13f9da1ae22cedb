"""Where the call of a group of operations stands: they may be apart, with others between them.

    %1 = f %x        // of the call            %3 = g %x
    %3 = g %x                          ->      %4 = call @f(%x, %3)
    %4 = h %1, %3    // of the call

The call stands where the first of them stood, or behind what it reads if that comes later. What reads a result of it
and stands in front of that place moves behind the call. If the call needs such an operation too, there is no place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ...analysis.step.order import read_values
from .bodies import LeftInlined


@dataclass(frozen=True)
class Place:
    """The call is put in front of `before`, and then `behind` is moved in between, in this order."""

    before: Operation
    behind: tuple[Operation, ...]


class Positions:
    """The order of a block while operations in it are replaced and moved."""

    def __init__(self, block: Block):
        self.block = block
        self.of = dict[Operation, float]()
        self._renumber()

    def _renumber(self) -> None:
        self.of = {op: float(index) for index, op in enumerate(self.block.ops)}

    def definition(self, value: SSAValue) -> Operation | None:
        """The operation of the block that makes the value."""
        return value.owner if isinstance(value.owner, Operation) and value.owner in self.of else None

    def inserted(self, operations: Sequence[Operation]) -> None:
        """Operations stand in the block, one behind the other, where they have not stood before."""
        previous, following = operations[0].prev_op, operations[-1].next_op
        low = self.of[previous] if previous is not None else -1.0
        high = self.of[following] if following is not None else low + 2.0
        for index, op in enumerate(operations, 1):
            self.of[op] = low + (high - low) * index / (len(operations) + 1)
            if not low < self.of[op] < high:
                self._renumber()
                return


def place_of(members: Collection[Operation], inputs: Collection[SSAValue], positions: Positions) -> Place:
    """Raises `LeftInlined` where the call would have to wait for what waits for it."""
    inside = set(members)
    first = min(inside, key=positions.of.__getitem__)
    makers = [op for value in inputs if (op := positions.definition(value)) is not None]
    latest = max(makers, key=positions.of.__getitem__, default=None)
    if latest is None or positions.of[latest] < positions.of[first]:
        return Place(first, ())
    made, behind = {result for op in inside for result in op.results}, list[Operation]()
    current = first
    while current is not latest.next_op:
        if current not in inside and not made.isdisjoint(read_values(current)):
            behind.append(current)
            made.update(current.results)
        assert current.next_op is not None, "the block ends behind what makes the values"
        current = current.next_op
    if any(op in behind for op in makers):
        raise LeftInlined("what it reads waits for what it makes")
    while current in inside:
        assert current.next_op is not None, "the block ends with a terminator"
        current = current.next_op
    return Place(current, tuple(behind))
