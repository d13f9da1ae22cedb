"""What becomes of donated arguments under XLA:CPU.

A result is written in the place of the argument that was donated for it. A kernel that reads the argument and that the
result does not wait for could run after that, so it gets a copy, made at the start; from then on the place is free for
temporaries until the result is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.dialects.func import FuncOp

from ....planning.graph import OUTSIDE
from .buffers import Life
from .run import Run


@dataclass(frozen=True)
class Donation:
    """`held`: how long the argument itself stays in the place of `result`; `copy`: how long its copy lives, if any."""

    result: int
    held: Life
    copy: Life | None


def donations(function: FuncOp, run: Run) -> Iterator[Donation]:
    """For each argument of `function` that carries `tf.aliasing_output`."""
    if not isinstance(function.arg_attrs, ArrayAttr):
        return
    for argument, attributes in enumerate(function.arg_attrs.data):
        target = attributes.data.get("tf.aliasing_output")
        if isinstance(target, IntegerAttr):
            yield _donation(argument, run.program.returned[target.value.data], run)


def _donation(argument: int, result: int, run: Run) -> Donation:
    maker, size = run.program.maker[result], run.program.sizes[argument]
    readers = [index for index, op in enumerate(run.schedule) if argument in run.fused.reads[op]]
    before = _all_needed(run, maker) if maker != OUTSIDE else set[int]()
    alive = Life(argument, size, 0, max(readers, default=0))
    if all(run.schedule[index] in before for index in readers):
        return Donation(result, alive, None)
    return Donation(result, Life(argument, size, -1, -1), alive)


def _all_needed(run: Run, op: int) -> set[int]:
    """The kernel and all kernels that it waits for."""
    found, waiting = {op}, [op]
    while waiting:
        new = run.needs.get(waiting.pop(), frozenset[int]()) - found
        found |= new
        waiting.extend(new)
    return found
