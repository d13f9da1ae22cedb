"""Run loops and branches with the storage rules of the static timeline.

At entry each carried value is copied into a buffer of its own: these are the storages of the loop's results, and the
regions' arguments alias them. The yielded values of an iteration are the next carry: moved if the iteration allocated
the value and yields it for the first time, otherwise copied. Then the previous carry is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from .kernels.arrays import Array, Kernel
from .program import BlockProgram, Observer


@dataclass(frozen=True)
class LoopBody:
    """A region; `moves`: which of its yielded values are moved. The first `flags` values of its program are not
    yielded."""

    program: BlockProgram
    moves: Sequence[bool]
    flags: int = 0

    def yielded(self, values: Sequence[Any]) -> list[Any]:
        """The yielded values: moved ones, and copies of the others."""
        return [value if move else value.copy() for value, move in zip(values[self.flags :], self.moves, strict=True)]

    def iterate(self, carry: Sequence[Array], outer: Sequence[Array], observer: Observer | None) -> list[Array]:
        """The next carry."""
        # Values that are not moved are live beside their copies until the observer is notified.
        results = self.program.run(*carry, *outer)
        following = self.yielded(results)
        if observer is not None:
            observer.yielded(self.program.end, following)
        return following


def conditional_loop(op: Operation, condition: BlockProgram, body: LoopBody, observer: Observer | None) -> Kernel:
    """`stablehlo.while`. The operands are the initial values, then the captures of the regions."""
    count = len(op.operands)

    def run(*values: Array) -> tuple[Array, ...]:
        outer = values[count:]
        carry = _entered(op, values[:count], observer)
        while condition.run(*carry, *outer)[0]:
            carry = body.iterate(carry, outer, observer)
            if observer is not None:
                observer.carried(op, carry)
        return tuple(carry)

    return run


def counted_loop(op: Operation, body: LoopBody, observer: Observer | None) -> Kernel:
    """`scf.for`. The operands are bounds, step and initial values, then the captures of the region."""
    count = len(op.operands)

    def run(low: Array, high: Array, step: Array, *values: Array) -> tuple[Array, ...]:
        if int(step) <= 0:
            raise ValueError(f"its step is {int(step)}, and must be positive")
        outer = values[count - 3 :]
        carry = _entered(op, values[: count - 3], observer)
        for index in range(int(low), int(high), int(step)):
            carry = body.iterate([np.asarray(index, low.dtype), *carry], outer, observer)
            if observer is not None:
                observer.carried(op, carry)
        return tuple(carry)

    return run


def _entered(op: Operation, initial: Sequence[Array], observer: Observer | None) -> list[Array]:
    carry = [value.copy() for value in initial]
    if observer is not None:
        observer.carried(op, carry)
    return carry


def two_part_loop(op: Operation, before: LoopBody, after: LoopBody, observer: Observer | None) -> Kernel:
    """`scf.while`. The first region yields a flag, and values: the arguments of the second region, or the results.

    Its arguments have a storage of their own, which is freed after it.
    """
    count = len(op.operands)

    def run(*values: Array) -> tuple[Array, ...]:
        outer = values[count:]
        carry = [value.copy() for value in values[:count]]
        if observer is not None:
            observer.yielded(before.program.end, carry)
        continues, passed = first_part(carry, outer)
        while continues:
            carry[:] = after.iterate(passed, outer, observer)
            passed.clear()
            continues, passed = first_part(carry, outer)
        return tuple(passed)

    def first_part(carry: list[Array], outer: Sequence[Array]) -> tuple[bool, list[Array]]:
        results = before.program.run(*carry, *outer)
        passed = before.yielded(results)
        if observer is not None:
            observer.yielded(before.program.end, passed)
            observer.carried(op, passed)
        carry.clear()
        return bool(results[0]), passed

    return run


def branches(
    op: Operation,
    choose: Callable[[Sequence[Array]], int],
    blocks: Sequence[LoopBody | None],
    observer: Observer | None,
) -> Kernel:
    """A branch moves its own storages, and copies other results. A missing branch does nothing."""
    count = len(op.operands)

    def run(*values: Array) -> tuple[Array, ...]:
        chosen = blocks[choose(values[:count])]
        if chosen is None:
            return ()
        results = tuple(chosen.yielded(chosen.program.run(*values[count:])))
        if observer is not None:
            observer.carried(op, results)
        return results

    return run


def yield_moves(block: Block, views: Container[SSAValue], flags: int = 0) -> list[bool]:
    """For each value that the block yields, whether it is a storage of this iteration, yielded for the first time."""
    assert block.last_op is not None, "a loop's body has a terminator"
    values = block.last_op.operands[flags:]
    return [
        value.owner is not block and value.owner.parent is block and value not in views and value not in values[:index]
        for index, value in enumerate(values)
    ]
