"""Donated arguments under XLA:CPU.

A result is written in the place of the argument that is donated for it. A kernel that reads the argument, and that the
result does not depend on, might run later, so it reads a copy that is made at the start; the place is then free for
temporaries until the result is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.dialects.func import FuncOp

from .buffers import Life
from .run import ScheduledKernels


@dataclass(frozen=True)
class Donation:
    """`held`: the live range of the argument in the place of `result`; `copy`: the live range of its copy, if any."""

    result: int
    held: Life
    copy: Life | None


def donated_for(function: FuncOp) -> Mapping[int, int]:
    """For each argument of `function` with `tf.aliasing_output`, the number of the result."""
    if not isinstance(function.arg_attrs, ArrayAttr):
        return {}
    targets = ((index, entry.data.get("tf.aliasing_output")) for index, entry in enumerate(function.arg_attrs.data))
    return {argument: target.value.data for argument, target in targets if isinstance(target, IntegerAttr)}


def donations(donated: Mapping[int, int], run: ScheduledKernels) -> Iterator[Donation]:
    """The donations of a run. `donated`: arguments, and the numbers of the results that they are donated for."""
    if not donated:
        return
    readers, needed = _readers(run), _all_needed(run)
    for argument, number in donated.items():
        result = run.program.returned[number]
        before = needed.get(run.program.maker[result], 0)
        yield _donation(argument, result, run, readers.get(argument, []), before)


def _donation(argument: int, result: int, run: ScheduledKernels, readers: Sequence[int], before: int) -> Donation:
    """`readers`: the steps that read the argument. `before`: bits of the result's step and the steps it depends on."""
    size = run.program.sizes[argument]
    alive = Life(argument, size, 0, max(readers, default=0))
    if all(before >> index & 1 for index in readers):
        return Donation(result, alive, None)
    return Donation(result, Life(argument, size, -1, -1), alive)


def _readers(run: ScheduledKernels) -> dict[int, list[int]]:
    """For each value the steps that read it."""
    readers = dict[int, list[int]]()
    for index, op in enumerate(run.schedule):
        for value in run.fused.reads[op]:
            readers.setdefault(value, []).append(index)
    return readers


def _all_needed(run: ScheduledKernels) -> dict[int, int]:
    """For each kernel its step and those of all kernels that it depends on, as bits."""
    needed = dict[int, int]()
    for index, op in enumerate(run.schedule):
        needed[op] = 1 << index
        for other in run.needs.get(op, ()):
            needed[op] |= needed[other]
    return needed
