"""Iterations of a loop, emitted inside another loop: the operations of its body, for carries and a counter of the new
loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.copies.loop_chunks import LoopPart
from ...analysis.step.counted_loops import CountedLoop
from ...analysis.step.stacks import Stack
from ...dialects.channels import take_channels
from ...dialects.names import Names
from ...dialects.stablehlo.checks import element_of, shape_of
from ...support.operations import every_operation
from ..plans.apply_plan import FreeNumbers, copy_of_original
from .loop_builder import Builder

ValueMap = dict[SSAValue, SSAValue]
"""Maps values of the original body to values of the new body."""
CloneOperation = Callable[[Operation, ValueMap], Operation]
"""Clones an operation and adds its results to the map."""
ExtraValues = Callable[[Builder, SSAValue], ValueMap]
"""Provides additional values of an iteration: (builder, iteration number) -> map."""


def clone_once(op: Operation, mapping: ValueMap) -> Operation:
    """Clone an operation whose original is erased, so that the clone keeps its id."""
    return op.clone(mapping)


def clone_duplicate(numbers: FreeNumbers) -> CloneOperation:
    """Return a function that clones operations which also stay elsewhere: ids are dropped and channels renumbered."""

    def clone(op: Operation, mapping: ValueMap) -> Operation:
        copy = op.clone(mapping)
        for inner in every_operation(copy):
            if Names.COPY not in inner.attributes:
                inner.attributes.pop(Names.ID, None)
        take_channels([copy], numbers.channels)
        return copy

    return clone


def clone_as_copy(numbers: FreeNumbers) -> CloneOperation:
    """Return a function that clones operations as copies, with the ids of their originals."""

    def clone(op: Operation, mapping: ValueMap) -> Operation:
        copy = copy_of_original(op, numbers.id_of(op), 1, lambda original: original.clone(mapping))
        take_channels([copy], numbers.channels)
        return copy

    return clone


@dataclass(frozen=True)
class IterationNumber:
    """The counter of the whole loop in iteration n of a chunk: `start + chunk * every + n`, or `start + n` without
    chunks."""

    start: int
    every: int = 0
    chunk: SSAValue | None = None

    def emit(self, builder: Builder, n: SSAValue) -> SSAValue:
        """Emit the counter in iteration `n`."""
        inside = n if self.chunk is None else builder.of_chunk(self.chunk, self.every, n)
        return builder.plus(inside, self.start)


@dataclass(frozen=True)
class IterationRange:
    """Consecutive iterations of a loop.

    Attributes:
        trips: Their number.
        begin: The carries at the beginning.
        number: The counter of the original loop, as a function of the counter of the new loop.
    """

    trips: int | SSAValue
    begin: Sequence[SSAValue]
    number: IterationNumber


@dataclass(frozen=True)
class Iterations:
    """The part of a loop's body that computes the needed carries; loop-invariant values are read from outside."""

    loop: CountedLoop
    needs: LoopPart

    def run(
        self,
        builder: Builder,
        iterations: IterationRange,
        clone: CloneOperation,
        extra: ExtraValues | None = None,
    ) -> Sequence[SSAValue]:
        """Emit a loop over iterations; return the carries after it.

        Args:
            builder: The builder.
            iterations: The iterations.
            clone: Clones the operations.
            extra: Additional values of each iteration.
        """

        def iteration(inside: Builder, n: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            extra_values = {} if extra is None else extra(inside, n)
            mapping = self.inputs(iterations.number.emit(inside, n), carried) | extra_values
            self.write(inside, mapping, clone)
            return self.following(mapping)

        return builder.loop(iterations.trips, iterations.begin, iteration)

    def inputs(self, counter: SSAValue, carried: Sequence[SSAValue]) -> ValueMap:
        """Map the inputs of an iteration, which are carries, counter and loop-invariant values, to new values."""
        block, loop = self.loop.block, self.loop
        mapping: ValueMap = {block.args[index]: value for index, value in zip(self.needs.carries, carried, strict=True)}
        mapping[block.args[loop.counter]] = counter
        for argument in block.args:
            if loop.is_invariant(argument.index):
                mapping[argument] = loop.op.operands[argument.index]
        return mapping

    def write(self, builder: Builder, mapping: ValueMap, clone: CloneOperation) -> None:
        """Emit the operations of an iteration, and add their results to the map."""
        for op in self.needs.operations:
            Rewriter.insert_op(clone(op, mapping), builder.point)

    def following(self, mapping: ValueMap) -> list[SSAValue]:
        """Return the carries that the iteration yields."""
        yielded = self.loop.yielded
        return [mapping.get(yielded[index], yielded[index]) for index in self.needs.carries]


@dataclass(frozen=True)
class Rerun:
    """A second run of some iterations of a loop, for the slices that it stacks."""

    loop: CountedLoop
    needs: LoopPart
    stacks: Sequence[Stack]

    def run(
        self, builder: Builder, trips: int, begin: Sequence[SSAValue], number: IterationNumber, numbers: FreeNumbers
    ) -> Sequence[SSAValue]:
        """Emit the loop, and return stacks with the slices of these iterations alone, in loop order."""
        iterations = Iterations(self.loop, self.needs)
        slices = [stack.slice for stack in self.stacks]
        empty = [builder.empty(trips, shape_of(slice_)[1:], element_of(slice_)) for slice_ in slices]

        def iteration(inside: Builder, n: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            carries, stacks = carried[: len(begin)], carried[len(begin) :]
            mapping = iterations.inputs(number.emit(inside, n), carries)
            iterations.write(inside, mapping, clone_as_copy(numbers))
            parts = [mapping.get(slice_, slice_) for slice_ in slices]
            written = [inside.write(stack, part, n) for stack, part in zip(stacks, parts, strict=True)]
            return [*iterations.following(mapping), *written]

        return builder.loop(trips, [*begin, *empty], iteration)[len(begin) :]
