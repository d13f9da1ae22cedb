"""Loop pairs that cross from a forward pass to its gradient: the first loop belongs to the forward pass, and the second
loop to the gradient. Only these pairs are cut.

    %r:2 = stablehlo.while …     loc("jit(step)/jvp()/while")                   an encoder
    …    = stablehlo.while …     loc("jit(step)/jvp()/while")                   a decoder, not a gradient of the first
    …    = stablehlo.while …     loc("jit(step)/transpose(jvp())/while")        the gradient of either

Recomputing a stack that only a forward loop reads frees no memory, because the stack is read soon after it is written,
and the copy would not belong to the gradient. This is also true of stacks that loops read to compute metrics or to
update parameters.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Block, Operation

from ...support.operations import every_operation
from .direction import Direction
from .jax_paths import path_of, transpositions
from .phase_sources import ATTRIBUTE, JAX_PATH, sources
from .stacks import LoopPair, loop_pairs


class Crossings:
    """The loop pairs of one function that cross from a forward pass to its gradient.

    Every reverse differentiation wraps a path in one more `transpose`. The gradient of a gradient, and a gradient
    inside a loss, therefore have their own crossings. If no operation of the function has a direction, a loop that
    reads its stacks from the last iteration to the first is assumed to be a backward loop.
    """

    def __init__(self, block: Block, outputs: bool = False):
        """Analyse the loops of a function, given its body.

        `outputs`: whether to recompute stacks that a forward loop also reads, as in `Selection`.
        """
        function = block.parent_op()
        self._outputs = outputs
        operations = () if function is None else every_operation(function)
        self._has_directions = any(_has_direction(op) for op in operations)

    def loop_pairs(self, block: Block) -> list[LoopPair]:
        """Return the block's loop pairs that cross from forward to backward, in the order of `stacks.loop_pairs`.

        A stack that a forward loop reads is an output of the writing loop. The gradient of the writing loop recomputes
        the output. A backward loop that reads only outputs, such as the gradient of the reading forward loop, reads the
        saved stack.
        """
        pairs = list(loop_pairs(block))
        crossing = [pair for pair in pairs if self.is_gradient(pair)]
        if self._outputs or len(crossing) == len(pairs):
            return crossing
        outputs = dict[Operation, set[int]]()
        for pair in pairs:
            if not self.is_gradient(pair):
                outputs.setdefault(pair.writer.op, set()).update(stack.index for stack in pair.stacks)
        return [_with_outputs(pair, frozenset(outputs.get(pair.writer.op, ()))) for pair in crossing]

    def is_gradient(self, pair: LoopPair) -> bool:
        """Return whether the reading loop belongs to the gradient of the writing loop."""
        if self._has_directions:
            return self.may_cross(pair.writer.op, pair.reader.op)
        return pair.reader.trips < 2 or any(reading.written.scale < 0 for reading in pair.readings)

    def may_cross(self, writer: Operation, reader: Operation) -> bool:
        """Return whether `reader` is nested in more reverse differentiations than `writer`; true if no operation has a
        direction."""
        return not self._has_directions or _depth(reader) > _depth(writer)


def _with_outputs(pair: LoopPair, outputs: frozenset[int]) -> LoopPair:
    reads_residuals = any(stack.index not in outputs for stack in pair.stacks)
    return replace(pair, outputs=outputs, only_read=pair.only_read if reads_residuals else frozenset[int]())


def _has_direction(op: Operation) -> bool:
    return any(source.direction(op) is not None for source in sources())


_DEPTHS = {Direction.NONE: 0, Direction.FORWARD: 0, Direction.BACKWARD: 1, Direction.NESTED: 2}


def _depth(op: Operation) -> int:
    """Return the number of reverse differentiations in which the operation is nested.

    For an operation without a direction, return the number of its parent operation.
    """
    enclosing: Operation | None = op
    while enclosing is not None:
        if (stated := ATTRIBUTE.direction(enclosing)) is not None:
            return _DEPTHS[stated]
        if (depth := transpositions(path_of(enclosing.location))) is not None:
            return depth
        for source in sources():
            if source not in (ATTRIBUTE, JAX_PATH) and (direction := source.direction(enclosing)) is not None:
                return _DEPTHS[direction]
        enclosing = enclosing.parent_op()
    return 0
