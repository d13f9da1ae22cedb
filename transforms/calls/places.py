"""Find the insertion point for the call of a group of operations, which need not be adjacent.

    %1 = f %x        // of the call            %3 = g %x
    %3 = g %x                          ->      %4 = call @f(%x, %3)
    %4 = h %1, %3    // of the call

The call is inserted at the first of them, or behind the last definition that it reads. Operations that read its results
and stand before that point move behind the call. If the call reads one of those too, there is no valid point.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ...analysis.step.order import read_values
from .bodies import LeftInlined


@dataclass(frozen=True)
class Place:
    """The call is inserted before `before`, and `behind` moves in between, in this order."""

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
        """The operation of the block that defines the value."""
        return value.owner if isinstance(value.owner, Operation) and value.owner in self.of else None

    def inserted(self, operations: Sequence[Operation]) -> None:
        """Number operations, one behind the other, that were inserted or moved."""
        previous, following = operations[0].prev_op, operations[-1].next_op
        low = self.of[previous] if previous is not None else -1.0
        high = self.of[following] if following is not None else low + 2.0
        for index, op in enumerate(operations, 1):
            self.of[op] = low + (high - low) * index / (len(operations) + 1)
            if not low < self.of[op] < high:
                self._renumber()
                return


def place_of(members: Collection[Operation], inputs: Collection[SSAValue], positions: Positions) -> Place:
    """Find the insertion point. Raises `LeftInlined` if the call and an operation would depend on each other."""
    inside = set(members)
    first = min(inside, key=positions.of.__getitem__)
    makers = [op for value in inputs if (op := positions.definition(value)) is not None]
    latest = max(makers, key=positions.of.__getitem__, default=None)
    if latest is None or positions.of[latest] < positions.of[first]:
        return Place(first, ())
    results, behind = {result for op in inside for result in op.results}, list[Operation]()
    current = first
    while current is not latest.next_op:
        if current not in inside and not results.isdisjoint(read_values(current)):
            behind.append(current)
            results.update(current.results)
        assert current.next_op is not None, "the block ends behind the definitions of the inputs"
        current = current.next_op
    if any(op in behind for op in makers):
        raise LeftInlined("its operands depend on its results")
    while current in inside:
        assert current.next_op is not None, "the block ends with a terminator"
        current = current.next_op
    return Place(current, tuple(behind))
