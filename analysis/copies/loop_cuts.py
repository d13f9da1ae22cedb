"""Cuts of loops that stack values for their gradient, as data.

A cut applies to a loop that writes stacks and a later loop that reads them. It divides the values of the writing loop's
body into values that stay stacked and values that the reading loop recomputes from the stacked values.
`search/local_choices/min_loop_cut.py` chooses the cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects.stablehlo.control import WhileOp
from ...rules.flops import flops
from ...support.operations import name_of
from ...support.type_guards import is_tensor
from ..step.counted_loops import CountedLoop, counted_loop
from ..step.crossings import Crossings
from ..step.stacks import LoopPair, Stack, StackRead, keeps_order, loop_pairs, stack_bytes
from ..step.views import value_bytes

MayRepeat = Callable[[Operation], bool]
"""A predicate that tells whether an operation may be recomputed."""

SMALLEST = "no smaller set of stacks determines the stacks that the later loop reads"
NOT_COUNTED = "its counter does not increase by one up to a constant, so the iteration that wrote a slice is unknown"
WRITTEN_ON = "it has attributes that a rewrite would lose"
READ_WHOLE = "the values that the loop passes to a later loop are not written and read slice by slice with its counter"


@dataclass(frozen=True)
class DroppedStacks:
    """The stacks that a rewrite of two loops drops.

    Attributes:
        pair: The writing loop and the reading loop.
        dropped: The stacks that have no readers after the rewrite.
    """

    pair: LoopPair
    dropped: tuple[Stack, ...]

    @property
    def dropped_reads(self) -> tuple[StackRead, ...]:
        """The reads of dropped stacks."""
        return self.pair.reads_of(self.dropped)

    @property
    def dropped_bytes(self) -> int:
        """Bytes of the dropped stacks over all iterations."""
        return stack_bytes(self.dropped)


@dataclass(frozen=True)
class LoopCut(DroppedStacks):
    """A cut of the writing loop's body into kept and recomputed values.

    Attributes:
        repeated: The operations of the writing body that the reading body repeats, in program order.
        kept: Values of the writing body that existing stacks hold, each with its stack.
        new: Values for which the cut adds a stack.
        why_not: The reason to leave the loops unchanged; None if the cut is to be applied.
    """

    repeated: tuple[Operation, ...]
    kept: tuple[tuple[SSAValue, Stack], ...]
    new: tuple[SSAValue, ...]
    why_not: str | None = None

    @property
    def new_bytes(self) -> int:
        return sum(value_bytes(value) for value in self.new) * self.pair.writer.trips

    @property
    def kept_bytes(self) -> int:
        """Bytes of all stacks that the reading loop reads after the cut."""
        dropped = {stack.index for stack in self.dropped}
        return self.new_bytes + sum(stack.bytes for stack in self.pair.stacks if stack.index not in dropped)

    @property
    def extra_flops(self) -> int:
        """FLOPs of the repeated operations over all iterations."""
        groups = len({reading.written for reading in self.dropped_reads})
        return sum(flops(op) for op in self.repeated) * groups * self.pair.reader.trips


CutOf = Callable[[LoopPair], LoopCut]
"""A function that returns the cut of a loop pair."""


def invariant_source(value: SSAValue, loop: CountedLoop) -> SSAValue | None:
    """Return the value outside the loop that equals a loop-invariant value; None if the value is not invariant."""
    if isinstance(value, BlockArgument) and value.block is loop.block:
        return loop.op.operands[value.index] if loop.is_invariant(value.index) else None
    return None if is_inside(value, loop) else value


def is_inside(value: SSAValue, loop: CountedLoop) -> bool:
    """Return whether the body of the loop defines the value."""
    if isinstance(value, BlockArgument):
        return value.block is loop.block
    return isinstance(value, OpResult) and value.op.parent is loop.block


def look_through_reshapes(value: SSAValue) -> SSAValue:
    """Return the value from which a chain of reshapes starts. The reshapes keep its elements and their order."""
    while isinstance(value, OpResult) and keeps_order(value.op):
        value = value.op.operands[0]
    return value


def loops_left_uncut(block: Block, crossings: Crossings) -> Iterator[tuple[Operation, str]]:
    """Yield the loops that pass tensors, but no stacks, to a backward loop, with the reason that they are not cut."""
    linked = {pair.writer.op for pair in loop_pairs(block)}
    for op in block.ops:
        if (
            isinstance(op, WhileOp)
            and op not in linked
            and any(crossings.may_cross(op, reader) for result in op.results for reader in _readers(result))
        ):
            loop = counted_loop(op)
            if loop is None:
                yield op, NOT_COUNTED
            else:
                yield op, READ_WHOLE if loop.is_bare else WRITTEN_ON


def _readers(value: SSAValue) -> Iterator[Operation]:
    """Yield the later loops that read a tensor of rank 2 or more without changing it."""
    if not isinstance(value, OpResult) or not is_tensor(value.type) or len(value.type.get_shape()) < 2:
        return
    for use in value.uses:
        user, holder = use.operation, use.operation.parent_op()
        if name_of(user) == "sdy.sharding_constraint":
            yield from _readers(user.results[0])
        if isinstance(holder, WhileOp) and holder.parent is value.op.parent:
            yield holder
        if isinstance(user, WhileOp) and user.parent is value.op.parent:
            last = user.body.block.last_op
            if last is not None and last.operands[use.index] is user.body.block.args[use.index]:
                yield user
