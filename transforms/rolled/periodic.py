"""Checkpoint every k iterations: both loops become loops over chunks.

    while n < 8 { stack %h; %h1 = f(%h, n) }          while q < 4 { stack %h; while r < 2 { %h1 = f(%h, 2 * q + r) } }
    while m < 8 { read 7 - m; … }                ->   while p < 4 { %h = read 3 - p; while r < 2 { stack %h; %h1 = … }
                                                                    while j < 2 { read 1 - j; … } }

If k does not divide the number of iterations, the remainder is a last chunk of its own, whose carries are in no stack.
The code size does not depend on the number of iterations.
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
from .iterations import IterationNumber, Iterations, Repeat, Rerun, clone_duplicate, clone_once
from .replace import builder_before, replace_loop


def in_chunks(chunks: Chunks, numbers: Numbers, replaced: Replaced) -> int:
    """Build the loops over chunks, redirect all uses and extend `replaced`. Returns the number of copies."""
    kept = _forward(chunks, numbers, replaced)
    _backward(chunks, numbers, kept, replaced)
    return len(chunks.again.operations)


@dataclass(frozen=True)
class _Checkpoints:
    """The carries at the start of each chunk: stacks for whole chunks, plain values for the remainder."""

    stacks: Sequence[SSAValue]
    last: Sequence[SSAValue]


def _forward(chunks: Chunks, numbers: Numbers, replaced: Replaced) -> _Checkpoints:
    loop, gone = chunks.link.writer, {stack.index for stack in chunks.dropped}
    read = {result.index for result in loop.op.results if any(result.uses)} - gone
    needs = demand(loop, [], read | set(chunks.checkpoints))
    iterations, place = Iterations(loop, needs), builder_before(loop)
    initial = [loop.op.operands[index] for index in needs.carries]
    kept = [needs.carries.index(index) for index in chunks.checkpoints]
    arguments = [loop.block.args[index] for index in chunks.checkpoints]
    empty = [place.empty(chunks.whole, shape_of(value), element_of(value)) for value in arguments]

    def chunk(place: Builder, q: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        values, stacks = carried[: len(initial)], carried[len(initial) :]
        slices = [place.as_slice(values[index]) for index in kept]
        written = [place.write(stack, part, q) for stack, part in zip(stacks, slices, strict=True)]
        number = IterationNumber(loop.start, chunks.every, q)
        return [*iterations.run(place, chunks.every, values, number, clone_once), *written]

    results = place.loop(chunks.whole, [*initial, *empty], chunk)
    values, stacks = results[: len(initial)], results[len(initial) :]
    last = [values[index] for index in kept]
    if chunks.rest:
        number = IterationNumber(loop.start + chunks.whole * chunks.every)
        values = iterations.run(place, chunks.rest, values, number, clone_duplicate(numbers))
    replace_loop(loop, dict(zip(needs.carries, values, strict=True)), place, replaced)
    return _Checkpoints(stacks, last)


def _backward(chunks: Chunks, numbers: Numbers, kept: _Checkpoints, replaced: Replaced) -> None:
    loop, readings = chunks.link.reader, chunks.readings
    read = {result.index for result in loop.op.results if any(result.uses)}
    needs = demand(loop, [], read, {reading.op.result for reading in readings})
    place, whole, every, rest = builder_before(loop), chunks.whole, chunks.every, chunks.rest
    writer = chunks.link.writer
    rerun, iterations = Rerun(writer, chunks.again, chunks.dropped), Iterations(loop, needs)
    slices = [[reading.op.result for reading in readings if reading.stack is stack] for stack in chunks.dropped]

    def gradients(
        place: Builder,
        trips: int,
        carried: Sequence[SSAValue],
        stacks: Sequence[SSAValue],
        number: IterationNumber,
        repeat: Repeat,
    ) -> Sequence[SSAValue]:
        def slices_of(inside: Builder, j: SSAValue) -> dict[SSAValue, SSAValue]:
            local = inside.minus_from(trips - 1, j) if chunks.is_reversed else j
            return {
                value: inside.read(stack, local)
                for stack, values in zip(stacks, slices, strict=True)
                for value in values
            }

        return iterations.run(place, trips, carried, number, repeat, slices_of)

    def chunk(place: Builder, p: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        q = place.minus_from(whole - 1, p) if chunks.is_reversed else p
        begin = [place.read_value(stack, q) for stack in kept.stacks]
        stacks = rerun.run(place, every, begin, IterationNumber(writer.start, every, q), numbers)
        number = IterationNumber(loop.start + rest * chunks.is_reversed, every, p)
        return gradients(place, every, carried, stacks, number, clone_once)

    def remainder(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        stacks = rerun.run(place, rest, kept.last, IterationNumber(writer.start + whole * every), numbers)
        number = IterationNumber(loop.start if chunks.is_reversed else loop.start + whole * every)
        return gradients(place, rest, carried, stacks, number, clone_duplicate(numbers))

    carried: Sequence[SSAValue] = [loop.op.operands[index] for index in needs.carries]
    if rest and chunks.is_reversed:
        carried = remainder(carried)
    carried = place.loop(whole, carried, chunk)
    if rest and not chunks.is_reversed:
        carried = remainder(carried)
    replace_loop(loop, dict(zip(needs.carries, carried, strict=True)), place, replaced)
