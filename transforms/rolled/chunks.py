"""Rewrite two loops that share stacks: instead of the stacks, save the carries once per chunk of iterations.

With chunks of k iterations, both loops become loops over chunks:

    while n < 8 { stack %h; %h1 = f(%h, n) }          while q < 4 { stack %h; while r < 2 { %h1 = f(%h, 2 * q + r) } }
    while m < 8 { read 7 - m; … }                ->   while p < 4 { %h = read 3 - p; while r < 2 { stack %h; %h1 = … }
                                                                    while j < 2 { read 1 - j; … } }

If k does not divide the number of iterations, the remaining iterations form a last chunk, whose carries are not
stacked. The code size does not depend on the number of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...analysis.copies.loop_chunks import Chunks, needed_part
from ...dialects.stablehlo.checks import element_of, shape_of
from ..plans.apply_plan import FreeNumbers
from .carries import Replaced
from .iterations import (
    ExtraValues,
    IterationRange,
    Iterations,
    OriginalCounter,
    Rerun,
    ValueMap,
    clone_beside_original,
    clone_in_place_of_original,
)
from .loop_builder import Builder, builder_before
from .loop_replacement import replace_loop, used_results


def save_in_chunks(chunks: Chunks, numbers: FreeNumbers, replaced: Replaced) -> int:
    """Rewrite both loops as loops over chunks; return the number of copies."""
    saved = _ForwardInChunks(chunks, numbers).replace(replaced)
    _BackwardInChunks(chunks, numbers, saved).replace(replaced)
    return len(chunks.recomputed_part.operations)


@dataclass(frozen=True)
class _SavedCarries:
    """The carries at the start of each chunk: stacks for the complete chunks, and values for an incomplete last
    chunk."""

    stacks: Sequence[SSAValue]
    last: Sequence[SSAValue]


class _ForwardInChunks:
    """A rewriter that replaces the forward loop with a loop over chunks. The new loop saves the carries at the start of
    each chunk.

    Attributes:
        needed: The part of the forward loop that is still needed without the dropped stacks.
        iterations: The iterations of this part.
        saved: The positions of the saved carries among the carries of `needed`.
    """

    def __init__(self, chunks: Chunks, numbers: FreeNumbers):
        self.chunks, self.numbers, self.loop = chunks, numbers, chunks.pair.writer
        read = used_results(self.loop) - {stack.index for stack in chunks.dropped}
        self.needed = needed_part(self.loop, [], read | set(chunks.checkpoints))
        self.iterations = Iterations(self.loop, self.needed)
        self.saved = [self.needed.carries.index(index) for index in chunks.checkpoints]

    def replace(self, replaced: Replaced) -> _SavedCarries:
        """Build the new loop, and redirect uses of the old loop's results to it. Return the saved carries."""
        builder, chunks = builder_before(self.loop), self.chunks
        initial = [self.loop.op.operands[index] for index in self.needed.carries]
        results = builder.loop(chunks.whole_chunks, [*initial, *self._empty_stacks(builder)], self._chunk)
        carries, stacks = results[: len(initial)], results[len(initial) :]
        last = [carries[index] for index in self.saved]
        if chunks.remainder:
            counter = OriginalCounter(self.loop.start + chunks.whole_chunks * chunks.every)
            remaining = IterationRange(chunks.remainder, carries, counter)
            carries = self.iterations.emit_loop(builder, remaining, clone_beside_original(self.numbers))
        replace_loop(self.loop, dict(zip(self.needed.carries, carries, strict=True)), builder, replaced)
        return _SavedCarries(stacks, last)

    def _empty_stacks(self, builder: Builder) -> list[SSAValue]:
        values = [self.loop.block.args[index] for index in self.chunks.checkpoints]
        return [builder.empty(self.chunks.whole_chunks, shape_of(value), element_of(value)) for value in values]

    def _chunk(self, builder: Builder, q: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Emit chunk `q`: save the carries, then run its iterations."""
        carries, stacks = carried[: len(self.needed.carries)], carried[len(self.needed.carries) :]
        slices = [builder.as_slice(carries[index]) for index in self.saved]
        written = [builder.write(stack, slice_, q) for stack, slice_ in zip(stacks, slices, strict=True)]
        every = self.chunks.every
        chunk = IterationRange(every, carries, OriginalCounter(self.loop.start, every, q))
        return [*self.iterations.emit_loop(builder, chunk, clone_in_place_of_original), *written]


class _BackwardInChunks:
    """A rewriter that replaces the backward loop with a loop over chunks. Each iteration reruns a chunk from its saved
    carries, then computes its gradients.

    Attributes:
        needed: The part of the backward loop that is needed when other operations provide the slices of the dropped
            stacks.
        iterations: The iterations of this part.
        rerun: The second run of the forward iterations of a chunk.
    """

    def __init__(self, chunks: Chunks, numbers: FreeNumbers, saved: _SavedCarries):
        self.chunks, self.numbers, self.saved = chunks, numbers, saved
        self.writer, self.loop = chunks.pair.writer, chunks.pair.reader
        slices = {reading.op.result for reading in chunks.dropped_reads}
        self.needed = needed_part(self.loop, [], used_results(self.loop), slices)
        self.iterations = Iterations(self.loop, self.needed)
        self.rerun = Rerun(self.writer, chunks.recomputed_part, chunks.dropped)

    def replace(self, replaced: Replaced) -> None:
        """Build the new loop, and redirect uses of the old loop's results to it."""
        builder, chunks = builder_before(self.loop), self.chunks
        carries: Sequence[SSAValue] = [self.loop.op.operands[index] for index in self.needed.carries]
        if chunks.remainder and chunks.is_reversed:
            carries = self._last_chunk(builder, carries)
        carries = builder.loop(chunks.whole_chunks, carries, self._chunk)
        if chunks.remainder and not chunks.is_reversed:
            carries = self._last_chunk(builder, carries)
        replace_loop(self.loop, dict(zip(self.needed.carries, carries, strict=True)), builder, replaced)

    def _chunk(self, builder: Builder, p: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Emit the gradients of the complete chunk that the new loop processes in iteration `p`."""
        every, is_reversed = self.chunks.every, self.chunks.is_reversed
        q = builder.subtract_from(self.chunks.whole_chunks - 1, p) if is_reversed else p
        begin = [builder.read_value(stack, q) for stack in self.saved.stacks]
        stacks = self.rerun.emit_loop(builder, every, begin, OriginalCounter(self.writer.start, every, q), self.numbers)
        counter = OriginalCounter(self.loop.start + self.chunks.remainder * is_reversed, every, p)
        chunk = IterationRange(every, carried, counter)
        return self.iterations.emit_loop(builder, chunk, clone_in_place_of_original, self._slices_of(stacks, every))

    def _last_chunk(self, builder: Builder, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Emit the gradients of the incomplete chunk."""
        trips, first = self.chunks.remainder, self.chunks.whole_chunks * self.chunks.every
        counter = OriginalCounter(self.writer.start + first)
        stacks = self.rerun.emit_loop(builder, trips, self.saved.last, counter, self.numbers)
        counter = OriginalCounter(self.loop.start if self.chunks.is_reversed else self.loop.start + first)
        clone = clone_beside_original(self.numbers)
        chunk = IterationRange(trips, carried, counter)
        return self.iterations.emit_loop(builder, chunk, clone, self._slices_of(stacks, trips))

    def _slices_of(self, stacks: Sequence[SSAValue], trips: int) -> ExtraValues:
        """Return a function that emits reads of a chunk's slices. These reads replace the reads of the dropped stacks.

        Args:
            stacks: The stacks with the slices of the chunk, in the order of the dropped stacks.
            trips: The number of iterations of the chunk.
        """

        def slices(builder: Builder, j: SSAValue) -> ValueMap:
            index = builder.subtract_from(trips - 1, j) if self.chunks.is_reversed else j
            return {
                reading.op.result: builder.read(stack, index)
                for dropped, stack in zip(self.chunks.dropped, stacks, strict=True)
                for reading in self.chunks.dropped_reads
                if reading.stack is dropped
            }

        return slices
