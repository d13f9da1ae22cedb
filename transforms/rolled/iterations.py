"""Iterations of a loop in another loop: some of its operations, with another counter and fewer carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.copies.loop_chunks import Demand
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
"""For values of the loop's body what stands for them in the other one."""
Repeat = Callable[[Operation, Mapping], Operation]
"""Writes an operation once more; with its results it adds to the mapping."""
Known = Callable[[Builder, SSAValue], Mapping]
"""What an iteration is given besides: written at a place, for a number of it."""


def as_it_is(op: Operation, mapping: Mapping) -> Operation:
    """For the one place at which it stands from now on."""
    return op.clone(mapping)


def once_more(numbers: Numbers) -> Repeat:
    """At another place too."""

    def repeat(op: Operation, mapping: Mapping) -> Operation:
        copy = op.clone(mapping)
        for inner in every_operation(copy):
            if Names.COPY not in inner.attributes:
                inner.attributes.pop(Names.ID, None)
        take_channels([copy], numbers.channels)
        return copy

    return repeat


def again(numbers: Numbers) -> Repeat:
    """As a copy, which says of what."""

    def repeat(op: Operation, mapping: Mapping) -> Operation:
        copy = copy_of_original(op, numbers.id_of(op), 1, mapping)
        take_channels([copy], numbers.channels)
        return copy

    return repeat


@dataclass(frozen=True)
class Number:
    """The counter of the whole loop in iteration n of a chunk: `start + chunk * every + n`; `start + n` of no chunk."""

    start: int
    every: int = 0
    chunk: SSAValue | None = None

    def written(self, place: Builder, n: SSAValue) -> SSAValue:
        inside = n if self.chunk is None else place.of_chunk(self.chunk, self.every, n)
        return place.plus(inside, self.start)


@dataclass(frozen=True)
class Iterations:
    """What a loop does for the carries that are needed; what it does not change is read where it comes from."""

    loop: CountedLoop
    needs: Demand

    def run(
        self,
        place: Builder,
        trips: int | SSAValue,
        begin: Sequence[SSAValue],
        number: Number,
        repeat: Repeat,
        known: Known | None = None,
    ) -> Sequence[SSAValue]:
        """Some iterations as a loop of their own; the carries after them."""

        def fill(inside: Builder, n: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            given = {} if known is None else known(inside, n)
            mapping = self.mapping(inside, number.written(inside, n), carried) | given
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
class Again:
    """A loop run again for the slices that it has stacked up."""

    loop: CountedLoop
    needs: Demand
    stacks: Sequence[Stack]

    def run(
        self, place: Builder, trips: int, begin: Sequence[SSAValue], number: Number, numbers: Numbers
    ) -> Sequence[SSAValue]:
        """Small stacks, which hold the slices of these iterations in the order of the loop."""
        one, slices = Iterations(self.loop, self.needs), [stack.slice for stack in self.stacks]
        empty = [place.empty(trips, shape_of(slice_)[1:], element_of(slice_)) for slice_ in slices]

        def fill(inside: Builder, n: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            carries, stacks = carried[: len(begin)], carried[len(begin) :]
            mapping = one.mapping(inside, number.written(inside, n), carries)
            one.write(inside, mapping, again(numbers))
            parts = [mapping.get(slice_, slice_) for slice_ in slices]
            written = [inside.write(stack, part, n) for stack, part in zip(stacks, parts, strict=True)]
            return [*one.following(mapping), *written]

        return place.loop(trips, [*begin, *empty], fill)[len(begin) :]
