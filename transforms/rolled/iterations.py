"""Build a loop over some iterations of another: a subset of its operations, another counter and fewer carries."""

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
from ...support.walk import every_operation
from ..plans.apply_plan import Numbers
from ..plans.copies import copy_of_original
from .builder import Builder

Mapping = dict[SSAValue, SSAValue]
"""Maps values of the original body to those of the new one."""
Repeat = Callable[[Operation, Mapping], Operation]
"""Clones an operation and adds its results to the mapping."""
ExtraValues = Callable[[Builder, SSAValue], Mapping]
"""Additional values of an iteration: (builder, iteration number) -> mapping."""


def clone_once(op: Operation, mapping: Mapping) -> Operation:
    """Clone an operation whose original is erased: it keeps its identity."""
    return op.clone(mapping)


def clone_duplicate(numbers: Numbers) -> Repeat:
    """Clone operations that stay in other places too: ids are dropped and channels renumbered."""

    def repeat(op: Operation, mapping: Mapping) -> Operation:
        copy = op.clone(mapping)
        for inner in every_operation(copy):
            if Names.COPY not in inner.attributes:
                inner.attributes.pop(Names.ID, None)
        take_channels([copy], numbers.channels)
        return copy

    return repeat


def clone_as_copy(numbers: Numbers) -> Repeat:
    """Clone operations as copies, which carry the ids of their originals."""

    def repeat(op: Operation, mapping: Mapping) -> Operation:
        copy = copy_of_original(op, numbers.id_of(op), 1, mapping)
        take_channels([copy], numbers.channels)
        return copy

    return repeat


@dataclass(frozen=True)
class IterationNumber:
    """The counter of the whole loop in iteration n of a chunk: `start + chunk * every + n`; `start + n` of no chunk."""

    start: int
    every: int = 0
    chunk: SSAValue | None = None

    def emit(self, place: Builder, n: SSAValue) -> SSAValue:
        inside = n if self.chunk is None else place.of_chunk(self.chunk, self.every, n)
        return place.plus(inside, self.start)


@dataclass(frozen=True)
class Iterations:
    """The operations of a loop for the needed carries; loop-invariant values are read from outside."""

    loop: CountedLoop
    needs: LoopPart

    def run(
        self,
        place: Builder,
        trips: int | SSAValue,
        begin: Sequence[SSAValue],
        number: IterationNumber,
        repeat: Repeat,
        extra: ExtraValues | None = None,
    ) -> Sequence[SSAValue]:
        """Build a loop over `trips` iterations from `number` on; returns the carries after them."""

        def fill(inside: Builder, n: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            extra_values = {} if extra is None else extra(inside, n)
            mapping = self.mapping(inside, number.emit(inside, n), carried) | extra_values
            self.write(inside, mapping, repeat)
            return self.following(mapping)

        return place.loop(trips, begin, fill)

    def mapping(self, place: Builder, counter: SSAValue, carried: Sequence[SSAValue]) -> Mapping:
        block, loop = self.loop.block, self.loop
        mapping: Mapping = {block.args[index]: value for index, value in zip(self.needs.carries, carried, strict=True)}
        mapping[block.args[loop.counter]] = counter
        for argument in block.args:
            if loop.is_invariant(argument.index):
                mapping[argument] = loop.op.operands[argument.index]
        return mapping

    def write(self, place: Builder, mapping: Mapping, repeat: Repeat) -> None:
        for op in self.needs.operations:
            Rewriter.insert_op(repeat(op, mapping), place.point)

    def following(self, mapping: Mapping) -> list[SSAValue]:
        yielded = self.loop.yielded
        return [mapping.get(yielded[index], yielded[index]) for index in self.needs.carries]


@dataclass(frozen=True)
class Rerun:
    """Rerun a loop for the slices that it stacks."""

    loop: CountedLoop
    needs: LoopPart
    stacks: Sequence[Stack]

    def run(
        self, place: Builder, trips: int, begin: Sequence[SSAValue], number: IterationNumber, numbers: Numbers
    ) -> Sequence[SSAValue]:
        """Build the loop; returns small stacks with the slices of these iterations in loop order."""
        iterations, slices = Iterations(self.loop, self.needs), [stack.slice for stack in self.stacks]
        empty = [place.empty(trips, shape_of(slice_)[1:], element_of(slice_)) for slice_ in slices]

        def fill(inside: Builder, n: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            carries, stacks = carried[: len(begin)], carried[len(begin) :]
            mapping = iterations.mapping(inside, number.emit(inside, n), carries)
            iterations.write(inside, mapping, clone_as_copy(numbers))
            parts = [mapping.get(slice_, slice_) for slice_ in slices]
            written = [inside.write(stack, part, n) for stack, part in zip(stacks, parts, strict=True)]
            return [*iterations.following(mapping), *written]

        return place.loop(trips, [*begin, *empty], fill)[len(begin) :]
