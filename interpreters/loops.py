"""`stablehlo.while`, with the storage rules that the static timeline counts by; `if` and `case`.

At entry each carried value is copied into a buffer of its own: these are the storages of the loop's results, and the
regions' arguments are other names for them. What an iteration yields is the next carry: moved where the iteration has
stored it itself and yields it for the first time, otherwise copied. Then the running carry is freed.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.stablehlo.control import WhileOp
from .kernels.arrays import Array, Kernel
from .program import Observer, Program


def loop(op: WhileOp, condition: Program, body: Program, moves: Sequence[bool], observer: Observer | None) -> Kernel:
    """The operands are the initial values, then what the regions capture."""
    count = len(op.operands)

    def run(*values: Array) -> tuple[Array, ...]:
        outer = values[count:]
        carry = [value.copy() for value in values[:count]]
        if observer is not None:
            observer.carried(op, carry)
        while condition.run(*carry, *outer)[0]:
            carry = iterate(carry, outer)
            if observer is not None:
                observer.carried(op, carry)
        return tuple(carry)

    def iterate(carry: list[Array], outer: tuple[Array, ...]) -> list[Array]:
        found = body.run(*carry, *outer)
        following = [value if move else value.copy() for value, move in zip(found, moves, strict=True)]
        if observer is not None:
            observer.yielded(body.end, following)
        return following

    return run


def branches(
    op: Operation, blocks: Sequence[Program], moves: Sequence[Sequence[bool]], observer: Observer | None
) -> Kernel:
    """`if` and `case`: a branch hands on its own storages, and copies of all else. Other indices take the last one."""

    def run(which: Array, *outer: Array) -> tuple[Array, ...]:
        index = int(which) if which.dtype != np.bool_ else int(not which)
        chosen = index if 0 <= index < len(blocks) else len(blocks) - 1
        found = blocks[chosen].run(*outer)
        results = tuple(value if move else value.copy() for value, move in zip(found, moves[chosen], strict=True))
        if observer is not None:
            observer.carried(op, results)
        return results

    return run


def yield_moves(block: Block, views: Container[SSAValue]) -> list[bool]:
    """For each value that the block yields, whether it is a storage of this iteration, yielded for the first time."""
    assert block.last_op is not None, "a loop's body has a terminator"
    values = block.last_op.operands
    return [
        value.owner is not block and value.owner.parent is block and value not in views and value not in values[:index]
        for index, value in enumerate(values)
    ]
