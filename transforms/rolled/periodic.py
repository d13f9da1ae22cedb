"""Carry checkpoints every k iterations out: both loops become loops over chunks.

    while n < 8 { stack %h; %h1 = f(%h, n) }          while q < 4 { stack %h; while r < 2 { %h1 = f(%h, 2 * q + r) } }
    while m < 8 { read 7 - m; … }                ->   while p < 4 { %h = read 3 - p; while r < 2 { stack %h; %h1 = … }
                                                                    while j < 2 { read 1 - j; … } }

What is left over where k does not divide the number of iterations is a last chunk of its own, and its carries are in no
stack. So the code does not grow with the number of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...analysis.copies.loop_chunks import Chunks, demand
from ...dialects.stablehlo.checks import element_of, shape_of
from ..plans.apply_plan import Numbers
from .builder import Builder
from .carries import Replaced
from .iterations import Again, Iterations, Number, Repeat, as_it_is, once_more
from .replace import in_front_of, stand_for


def in_chunks(chunks: Chunks, numbers: Numbers, replaced: Replaced) -> int:
    """How many copies are made. Nobody reads either loop then; `replaced` is added to."""
    kept = _forward(chunks, numbers, replaced)
    _backward(chunks, numbers, kept, replaced)
    return len(chunks.again.operations)


@dataclass(frozen=True)
class _Kept:
    """The carries as each chunk begins: stacks of those of the whole chunks, and those of the rest as they are."""

    stacks: Sequence[SSAValue]
    last: Sequence[SSAValue]


def _forward(chunks: Chunks, numbers: Numbers, replaced: Replaced) -> _Kept:
    loop, gone = chunks.link.writer, {stack.index for stack in chunks.dropped}
    read = {result.index for result in loop.op.results if any(result.uses)} - gone
    needs = demand(loop, [], read | set(chunks.checkpoints))
    iterations, place = Iterations(loop, needs), in_front_of(loop)
    initial = [loop.op.operands[index] for index in needs.carries]
    kept = [needs.carries.index(index) for index in chunks.checkpoints]
    arguments = [loop.block.args[index] for index in chunks.checkpoints]
    empty = [place.empty(chunks.whole, shape_of(value), element_of(value)) for value in arguments]

    def chunk(place: Builder, q: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        values, stacks = carried[: len(initial)], carried[len(initial) :]
        slices = [place.as_slice(values[index]) for index in kept]
        written = [place.write(stack, part, q) for stack, part in zip(stacks, slices, strict=True)]
        number = Number(loop.start, chunks.every, q)
        return [*iterations.run(place, chunks.every, values, number, as_it_is), *written]

    results = place.loop(chunks.whole, [*initial, *empty], chunk)
    values, stacks = results[: len(initial)], results[len(initial) :]
    last = [values[index] for index in kept]
    if chunks.rest:
        number = Number(loop.start + chunks.whole * chunks.every)
        values = iterations.run(place, chunks.rest, values, number, once_more(numbers))
    stand_for(loop, dict(zip(needs.carries, values, strict=True)), place, replaced)
    return _Kept(stacks, last)


def _backward(chunks: Chunks, numbers: Numbers, kept: _Kept, replaced: Replaced) -> None:
    loop, readings = chunks.link.reader, chunks.readings
    read = {result.index for result in loop.op.results if any(result.uses)}
    needs = demand(loop, [], read, {reading.op.result for reading in readings})
    place, whole, every, rest = in_front_of(loop), chunks.whole, chunks.every, chunks.rest
    writer = chunks.link.writer
    again, iterations = Again(writer, chunks.again, chunks.dropped), Iterations(loop, needs)
    slices = [[reading.op.result for reading in readings if reading.stack is stack] for stack in chunks.dropped]

    def gradients(
        place: Builder, trips: int, carried: Sequence[SSAValue], stacks: Sequence[SSAValue], number: Number, how: Repeat
    ) -> Sequence[SSAValue]:
        def known(inside: Builder, j: SSAValue) -> dict[SSAValue, SSAValue]:
            local = inside.minus_from(trips - 1, j) if chunks.is_reversed else j
            return {
                value: inside.read(stack, local)
                for stack, values in zip(stacks, slices, strict=True)
                for value in values
            }

        return iterations.run(place, trips, carried, number, how, known)

    def chunk(place: Builder, p: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        q = place.minus_from(whole - 1, p) if chunks.is_reversed else p
        begin = [place.read_value(stack, q) for stack in kept.stacks]
        stacks = again.run(place, every, begin, Number(writer.start, every, q), numbers)
        number = Number(loop.start + rest * chunks.is_reversed, every, p)
        return gradients(place, every, carried, stacks, number, as_it_is)

    def the_rest(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        stacks = again.run(place, rest, kept.last, Number(writer.start + whole * every), numbers)
        number = Number(loop.start if chunks.is_reversed else loop.start + whole * every)
        return gradients(place, rest, carried, stacks, number, once_more(numbers))

    carried: Sequence[SSAValue] = [loop.op.operands[index] for index in needs.carries]
    if rest and chunks.is_reversed:
        carried = the_rest(carried)
    carried = place.loop(whole, carried, chunk)
    if rest and not chunks.is_reversed:
        carried = the_rest(carried)
    stand_for(loop, dict(zip(needs.carries, carried, strict=True)), place, replaced)
