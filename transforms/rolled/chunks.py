"""Rewrite of two loops that share stacks so that carries are saved once per chunk of iterations instead.

With chunks of k iterations, both loops become loops over chunks:

    while n < 8 { stack %h; %h1 = f(%h, n) }          while q < 4 { stack %h; while r < 2 { %h1 = f(%h, 2 * q + r) } }
    while m < 8 { read 7 - m; … }                ->   while p < 4 { %h = read 3 - p; while r < 2 { stack %h; %h1 = … }
                                                                    while j < 2 { read 1 - j; … } }

If k does not divide the number of iterations, the remainder is a last chunk, whose carries are in no stack. The code
size does not depend on the number of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...analysis.copies.loop_chunks import Chunks, needed_part
from ...dialects.stablehlo.checks import element_of, shape_of
from ..plans.apply_plan import FreeNumbers
from .carries import Replaced
from .loop_builder import (
    Builder,
    IterationNumber,
    Iterations,
    Repeat,
    Rerun,
    clone_duplicate,
    clone_once,
)
from .loop_replacement import builder_before, replace_loop


def save_in_chunks(chunks: Chunks, numbers: FreeNumbers, replaced: Replaced) -> int:
    """Rewrite both loops with chunks; return the number of copies."""
    checkpoints = _forward_in_chunks(chunks, numbers, replaced)
    _backward_in_chunks(chunks, numbers, checkpoints, replaced)
    return len(chunks.recomputed_part.operations)


@dataclass(frozen=True)
class _Checkpoints:
    """The carries at the start of each chunk: stacks for complete chunks, plain values for the last incomplete one."""

    stacks: Sequence[SSAValue]
    last: Sequence[SSAValue]


def _forward_in_chunks(chunks: Chunks, numbers: FreeNumbers, replaced: Replaced) -> _Checkpoints:
    """Build the forward loop over chunks, which saves the carries at the start of each chunk; return these."""
    loop, dropped = chunks.link.writer, {stack.index for stack in chunks.dropped}
    read = {result.index for result in loop.op.results if any(result.uses)} - dropped
    needs = needed_part(loop, [], read | set(chunks.checkpoints))
    iterations, builder = Iterations(loop, needs), builder_before(loop)
    initial = [loop.op.operands[index] for index in needs.carries]
    kept = [needs.carries.index(index) for index in chunks.checkpoints]
    arguments = [loop.block.args[index] for index in chunks.checkpoints]
    empty = [builder.empty(chunks.whole_chunks, shape_of(value), element_of(value)) for value in arguments]

    def chunk(builder: Builder, q: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        values, stacks = carried[: len(initial)], carried[len(initial) :]
        slices = [builder.as_slice(values[index]) for index in kept]
        written = [builder.write(stack, part, q) for stack, part in zip(stacks, slices, strict=True)]
        number = IterationNumber(loop.start, chunks.every, q)
        return [*iterations.run(builder, chunks.every, values, number, clone_once), *written]

    results = builder.loop(chunks.whole_chunks, [*initial, *empty], chunk)
    values, stacks = results[: len(initial)], results[len(initial) :]
    last = [values[index] for index in kept]
    if chunks.remainder:
        number = IterationNumber(loop.start + chunks.whole_chunks * chunks.every)
        values = iterations.run(builder, chunks.remainder, values, number, clone_duplicate(numbers))
    replace_loop(loop, dict(zip(needs.carries, values, strict=True)), builder, replaced)
    return _Checkpoints(stacks, last)


def _backward_in_chunks(chunks: Chunks, numbers: FreeNumbers, checkpoints: _Checkpoints, replaced: Replaced) -> None:
    """Build the backward loop over chunks, which reruns each chunk from its carries and computes its gradients."""
    loop, readings = chunks.link.reader, chunks.dropped_reads
    read = {result.index for result in loop.op.results if any(result.uses)}
    needs = needed_part(loop, [], read, {reading.op.result for reading in readings})
    builder, whole, every, remainder = builder_before(loop), chunks.whole_chunks, chunks.every, chunks.remainder
    writer = chunks.link.writer
    rerun, iterations = Rerun(writer, chunks.recomputed_part, chunks.dropped), Iterations(loop, needs)
    slices = [[reading.op.result for reading in readings if reading.stack is stack] for stack in chunks.dropped]

    def gradients(
        builder: Builder,
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

        return iterations.run(builder, trips, carried, number, repeat, slices_of)

    def chunk(builder: Builder, p: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        q = builder.minus_from(whole - 1, p) if chunks.is_reversed else p
        start_carries = [builder.read_value(stack, q) for stack in checkpoints.stacks]
        stacks = rerun.run(builder, every, start_carries, IterationNumber(writer.start, every, q), numbers)
        number = IterationNumber(loop.start + remainder * chunks.is_reversed, every, p)
        return gradients(builder, every, carried, stacks, number, clone_once)

    def last_chunk(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        stacks = rerun.run(builder, remainder, checkpoints.last, IterationNumber(writer.start + whole * every), numbers)
        number = IterationNumber(loop.start if chunks.is_reversed else loop.start + whole * every)
        return gradients(builder, remainder, carried, stacks, number, clone_duplicate(numbers))

    carried: Sequence[SSAValue] = [loop.op.operands[index] for index in needs.carries]
    if remainder and chunks.is_reversed:
        carried = last_chunk(carried)
    carried = builder.loop(whole, carried, chunk)
    if remainder and not chunks.is_reversed:
        carried = last_chunk(carried)
    replace_loop(loop, dict(zip(needs.carries, carried, strict=True)), builder, replaced)
