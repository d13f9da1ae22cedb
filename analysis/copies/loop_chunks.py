"""Data of the schedules that save some carries of a loop instead of its stacks: every n-th carry, or carries in a fixed
number of slots. `search/local_choices/carries_to_save.py` chooses them.

    before   N slices are live between the writing loop and the reading loop
    chunks   the carry at the start of each chunk of n iterations, and the slices of one chunk
    slots    the carries in the slots, and the slice of one iteration

These schedules apply to the stacks that remain after the smallest cut of the body (`loop_cuts.py`). Often, these stacks
hold the carry of every iteration, which takes too much memory if the loop is long.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from typing_extensions import override
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from ...planning.binomial import advances
from ...rules.flops import flops
from ...support.counted import counted
from ..step.counted_loops import CountedLoop
from ..step.order import read_values
from ..step.views import value_bytes
from .loop_cuts import DroppedStacks


@dataclass(frozen=True)
class LoopPart:
    """The part of a loop that computes certain values.

    Attributes:
        carries: The indices of the carries that iterations change, except the counter.
        operations: The operations of the body, in program order.
    """

    carries: tuple[int, ...]
    operations: tuple[Operation, ...]

    @property
    def size(self) -> int:
        return len(self.operations)


def needed_part(
    loop: CountedLoop, needed: Iterable[SSAValue], results: Iterable[int], available: Collection[SSAValue] = ()
) -> LoopPart:
    """Return the part of the loop that computes the given body values and results.

    Args:
        loop: The loop.
        needed: The values of the body to compute.
        results: The indices of the loop's results to compute.
        available: Values that need not be computed.
    """
    invariant = {loop.counter, *(argument.index for argument in loop.block.args if loop.is_invariant(argument.index))}
    carries = set(results) - invariant
    operations = set[Operation]()
    visited = set[SSAValue]()
    pending = [*needed, *(loop.yielded[index] for index in carries)]
    while pending:
        value = pending.pop()
        if value in visited or value in available:
            continue
        visited.add(value)
        if isinstance(value, BlockArgument) and value.block is loop.block:
            if value.index not in carries | invariant:
                carries.add(value.index)
                pending.append(loop.yielded[value.index])
        elif isinstance(value, OpResult) and value.op.parent is loop.block and value.op not in operations:
            operations.add(value.op)
            pending.extend(read_values(value.op))
    return LoopPart(tuple(sorted(carries)), tuple(op for op in loop.block.ops if op in operations))


@dataclass(frozen=True)
class SavedCarries(DroppedStacks, ABC):
    """A schedule that saves carries of the writing loop instead of the stacks in `dropped`.

    Attributes:
        recomputed_part: The part of the writing loop that recomputes the slices of the dropped stacks from the carries.
        why_not: The reason to leave the loops unchanged; None if the schedule is to be applied.
    """

    recomputed_part: LoopPart
    why_not: str | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def after_bytes(self) -> int:
        """Peak bytes of the saved carries and the recomputed slices."""

    @property
    @abstractmethod
    def iterations(self) -> int:
        """Number of iterations that are rerun."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The phrase that messages use for the saved carries, such as "its carries every 8 iterations"."""

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """The indices of the saved carries: those that change from one iteration to the next."""
        return self.recomputed_part.carries

    @property
    def is_reversed(self) -> bool:
        """Whether the reading loop starts with the slice that was written last."""
        return self.dropped_reads[0].written.scale < 0

    @property
    def slice_bytes(self) -> int:
        """Bytes that the dropped stacks hold for one iteration."""
        return self.dropped_bytes // self.pair.writer.trips

    @property
    def carry_bytes(self) -> int:
        """Bytes of the saved carries of one iteration."""
        return sum(value_bytes(self.pair.writer.block.args[index]) for index in self.checkpoints)

    @property
    def extra_flops(self) -> int:
        """FLOPs of all repeated iterations."""
        return sum(map(flops, self.recomputed_part.operations)) * self.iterations


@dataclass(frozen=True)
class Chunks(SavedCarries):
    """A schedule that saves the carries every `every` iterations.

    The iterations from one saved carry to the next, a chunk, are recomputed together.
    """

    every: int

    @property
    def whole_chunks(self) -> int:
        """Number of complete chunks."""
        return self.pair.writer.trips // self.every

    @property
    def remainder(self) -> int:
        """Number of iterations in the incomplete last chunk; 0 if there is none."""
        return self.pair.writer.trips - self.whole_chunks * self.every

    @property
    @override
    def after_bytes(self) -> int:
        """Bytes of all saved carries, including the carry of an incomplete chunk, plus the slices of one chunk."""
        return (self.whole_chunks + (self.remainder > 0)) * self.carry_bytes + self.every * self.slice_bytes

    @property
    @override
    def iterations(self) -> int:
        return self.pair.writer.trips

    @property
    @override
    def description(self) -> str:
        return f"its carries every {f'{self.every} iterations' if self.every > 1 else 'iteration'}"


@dataclass(frozen=True)
class Slots(SavedCarries):
    """A schedule that saves carries in a fixed number of slots. The slots are reused while the reading loop runs."""

    slots: int

    @property
    @override
    def after_bytes(self) -> int:
        """Bytes of all slots, plus the carry from which the reading loop starts and the slices of one iteration."""
        return (self.slots + 1) * self.carry_bytes + self.slice_bytes

    @property
    @override
    def iterations(self) -> int:
        """Number of iterations that are rerun. They include the iterations that advance from a slot to a later carry,
        and one run of each iteration to recompute its slices."""
        trips = self.pair.writer.trips
        return advances(trips, self.slots) - (trips - 1) + trips

    @property
    @override
    def description(self) -> str:
        return f"its carries in {counted(self.slots, 'slot')}"
