"""What becomes of donated arguments under XLA:CPU.

A result is written in the place of the argument that was donated for it. A kernel that reads the argument and that the
result does not wait for could run after that, so it gets a copy, made at the start; from then on the place is free for
temporaries until the result is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.dialects.func import FuncOp

from .buffers import Life
from .run import Run


@dataclass(frozen=True)
class Donation:
    """`held`: how long the argument itself stays in the place of `result`; `copy`: how long its copy lives, if any."""

    result: int
    held: Life
    copy: Life | None


def donated_for(function: FuncOp) -> Mapping[int, int]:
    """For each argument of `function` that carries `tf.aliasing_output`, the number of the result."""
    if not isinstance(function.arg_attrs, ArrayAttr):
        return {}
    targets = ((index, said.data.get("tf.aliasing_output")) for index, said in enumerate(function.arg_attrs.data))
    return {argument: target.value.data for argument, target in targets if isinstance(target, IntegerAttr)}


def donations(donated: Mapping[int, int], run: Run) -> Iterator[Donation]:
    """`donated`: arguments, and the numbers of the results that they are donated for."""
    if not donated:
        return
    readers, needed = _readers(run), _all_needed(run)
    for argument, number in donated.items():
        result = run.program.returned[number]
        before = needed.get(run.program.maker[result], 0)
        yield _donation(argument, result, run, readers.get(argument, []), before)


def _donation(argument: int, result: int, run: Run, readers: Sequence[int], before: int) -> Donation:
    """`readers`: when the argument is read. `before`: the steps that the result waits for, its own too, as bits."""
    size = run.program.sizes[argument]
    alive = Life(argument, size, 0, max(readers, default=0))
    if all(before >> index & 1 for index in readers):
        return Donation(result, alive, None)
    return Donation(result, Life(argument, size, -1, -1), alive)


def _readers(run: Run) -> dict[int, list[int]]:
    """For each value the steps that read it."""
    found = dict[int, list[int]]()
    for index, op in enumerate(run.schedule):
        for value in run.fused.reads[op]:
            found.setdefault(value, []).append(index)
    return found


def _all_needed(run: Run) -> dict[int, int]:
    """For each kernel its step and those of all kernels that it waits for, as bits."""
    found = dict[int, int]()
    for index, op in enumerate(run.schedule):
        found[op] = 1 << index
        for other in run.needs.get(op, ()):
            found[op] |= found[other]
    return found
