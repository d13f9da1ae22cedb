"""The regions of reduce and scatter, which combine scalars, run on vectors of scalars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from xdsl.ir import Block

from ..dialects.stablehlo.creation import ConstantOp
from .kernels.arrays import Array, Combine, dtype_at, on_one
from .kernels.conversion import convert
from .kernels.table import ELEMENTWISE
from .program import Program, Step


def combiner(program: Program, block: Block) -> Combine:
    """All elements at once where every operation is elementwise, otherwise one element after the other."""
    dtypes = [dtype_at(argument) for argument in block.args]
    at_once = all(step.op.name in ELEMENTWISE or isinstance(step.op, ConstantOp) for step in program.steps)
    vectors = replace(program, steps=tuple(map(_filling, program.steps))) if at_once else program

    def run(*values: Array) -> tuple[Array, ...]:
        known = [convert(one, to) if one.dtype != to else one for one, to in zip(values, dtypes, strict=False)]
        alike = np.broadcast_arrays(*known, *values[len(dtypes) :])
        return vectors.run(*alike) if at_once else _one_by_one(program, alike)

    return run


def _filling(step: Step) -> Step:
    """A constant as a vector as long as the first argument; all else as it is."""
    if not isinstance(step.op, ConstantOp):
        return step
    return replace(step, kernel=on_one(lambda like: np.full(like.shape, step.kernel()[0])), operands=(0,))


def _one_by_one(program: Program, values: tuple[Array, ...]) -> tuple[Array, ...]:
    dtypes = [dtype_at(value) for value in program.end.operands]
    results = [np.empty(values[0].shape, dtype) for dtype in dtypes]
    for index in range(values[0].size):
        for result, element in zip(results, program.run(*(np.asarray(one[index]) for one in values)), strict=True):
            result[index] = element
    return tuple(results)
