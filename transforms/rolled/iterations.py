"""Emit iterations of an original loop inside a new loop: the operations of its body, with the carries and the counter
of the new loop."""

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
"""A function that clones an operation and adds its results to the map."""
ExtraValues = Callable[[Builder, SSAValue], ValueMap]
"""A function that emits additional values of an iteration: (builder, counter of the new loop) -> map."""


def clone_in_place_of_original(op: Operation, mapping: ValueMap) -> Operation:
    """Clone an operation whose original will be erased. The clone has the same id."""
    return op.clone(mapping)


def clone_beside_original(numbers: FreeNumbers) -> CloneOperation:
    """Return a function that clones operations and keeps the originals. Clones lose their id, and get
    new channels."""

    def clone(op: Operation, mapping: ValueMap) -> Operation:
        copy = op.clone(mapping)
        for inner in every_operation(copy):
            if Names.COPY not in inner.attributes:
                inner.attributes.pop(Names.ID, None)
        take_channels([copy], numbers.channels)
        return copy

    return clone


def clone_as_copy(numbers: FreeNumbers) -> CloneOperation:
    """Return a function that clones operations as recomputed copies, with the ids of their originals."""

    def clone(op: Operation, mapping: ValueMap) -> Operation:
        copy = copy_of_original(op, numbers.id_of(op), 1, lambda original: original.clone(mapping))
        take_channels([copy], numbers.channels)
        return copy

    return clone


@dataclass(frozen=True)
class OriginalCounter:
    """The counter of the original loop as a function of the counter n of the new loop.

    The function is `start + chunk * chunk_trips + n`, or `start + n` without chunks.
    """

    start: int
    chunk_trips: int = 0
    chunk: SSAValue | None = None

    def emit(self, builder: Builder, n: SSAValue) -> SSAValue:
        """Emit the value of the original counter in iteration `n` of the new loop."""
        inside = n if self.chunk is None else builder.index_in_chunks(self.chunk, self.chunk_trips, n)
        return builder.add_constant(inside, self.start)


@dataclass(frozen=True)
class IterationRange:
    """Consecutive iterations of a loop.

    Attributes:
        trips: The number of iterations.
        initial: The carries before the first iteration.
        counter: The counter of the original loop.
    """

    trips: int | SSAValue
    initial: Sequence[SSAValue]
    counter: OriginalCounter


@dataclass(frozen=True)
class Iterations:
    """Emits iterations of a loop, with only the operations that compute the needed carries.

    Loop-invariant values are read from outside the loop.

    Attributes:
        loop: The original loop.
        needed: The needed part of the loop.
    """

    loop: CountedLoop
    needed: LoopPart

    def emit_loop(
        self,
        builder: Builder,
        iterations: IterationRange,
        clone: CloneOperation,
        extra: ExtraValues | None = None,
    ) -> Sequence[SSAValue]:
        """Emit a loop that runs the given iterations. Return its final carries.

        Args:
            builder: The builder that inserts the operations.
            iterations: The range of iterations.
            clone: A function that clones the operations.
            extra: A function that emits additional values of each iteration.
        """

        def iteration(inside: Builder, n: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            extra_values = {} if extra is None else extra(inside, n)
            mapping = self.map_inputs(iterations.counter.emit(inside, n), carried) | extra_values
            self.emit_operations(inside, mapping, clone)
            return self.yielded_carries(mapping)

        return builder.loop(iterations.trips, iterations.initial, iteration)

    def map_inputs(self, counter: SSAValue, carried: Sequence[SSAValue]) -> ValueMap:
        """Map the inputs of an iteration (carries, counter and loop-invariant values) to values of the new loop."""
        block, loop = self.loop.block, self.loop
        mapping: ValueMap = {
            block.args[index]: value for index, value in zip(self.needed.carries, carried, strict=True)
        }
        mapping[block.args[loop.counter]] = counter
        for argument in block.args:
            if loop.is_invariant(argument.index):
                mapping[argument] = loop.op.operands[argument.index]
        return mapping

    def emit_operations(self, builder: Builder, mapping: ValueMap, clone: CloneOperation) -> None:
        """Emit the operations of an iteration, and add their results to the map."""
        for op in self.needed.operations:
            Rewriter.insert_op(clone(op, mapping), builder.point)

    def yielded_carries(self, mapping: ValueMap) -> list[SSAValue]:
        """Return the carries that the iteration yields."""
        yielded = self.loop.yielded
        return [mapping.get(yielded[index], yielded[index]) for index in self.needed.carries]


@dataclass(frozen=True)
class Rerun:
    """A second run of some loop iterations, which computes the slices that the loop stacks."""

    loop: CountedLoop
    needed: LoopPart
    stacks: Sequence[Stack]

    def emit_loop(
        self, builder: Builder, trips: int, initial: Sequence[SSAValue], counter: OriginalCounter, numbers: FreeNumbers
    ) -> Sequence[SSAValue]:
        """Emit the loop. Return stacks with only the slices of these iterations, in the order of computation."""
        iterations = Iterations(self.loop, self.needed)
        slices = [stack.slice for stack in self.stacks]
        empty = [builder.empty(trips, shape_of(slice_)[1:], element_of(slice_)) for slice_ in slices]

        def iteration(inside: Builder, n: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            carries, stacks = carried[: len(initial)], carried[len(initial) :]
            mapping = iterations.map_inputs(counter.emit(inside, n), carries)
            iterations.emit_operations(inside, mapping, clone_as_copy(numbers))
            parts = [mapping.get(slice_, slice_) for slice_ in slices]
            written = [inside.write(stack, part, n) for stack, part in zip(stacks, parts, strict=True)]
            return [*iterations.yielded_carries(mapping), *written]

        return builder.loop(trips, [*initial, *empty], iteration)[len(initial) :]
