"""Run regions that combine scalars on vectors of scalars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from xdsl.ir import Block

from .kernels.arrays import Array, Combine, dtype_at, on_one, shape_at
from .kernels.conversion import convert
from .kernels.table import ELEMENTWISE
from .program import BlockProgram, ProgramStep

CONSTANTS = frozenset({"stablehlo.constant", "arith.constant"})


def combiner(program: BlockProgram, block: Block, numbers: int = 0) -> Combine:
    """Run all elements at once if every operation is elementwise, otherwise one element after the other.

    The program takes the arguments of the block, `numbers` loop indices, and then the captures of the block, which are
    the same for all elements. Raises `ValueError` for a block on tensors with dimensions.
    """
    if any(shape_at(argument) for argument in block.args):
        raise ValueError("its region combines tensors; only regions that combine scalars are executed")
    dtypes = [dtype_at(argument) for argument in block.args]
    vectors = len(dtypes) + numbers
    at_once = all(step.op.name in ELEMENTWISE or step.op.name in CONSTANTS for step in program.steps)
    filled = replace(program, steps=tuple(map(_filling, program.steps))) if at_once else program

    def run(*values: Array) -> tuple[Array, ...]:
        vector_arguments = [
            convert(value, to) if value.dtype != to else value for value, to in zip(values, dtypes, strict=False)
        ]
        vector_arguments += values[len(dtypes) : vectors]
        if at_once:
            return filled.run(*np.broadcast_arrays(*vector_arguments, *values[vectors:]))
        return _one_by_one(program, np.broadcast_arrays(*vector_arguments), values[vectors:])

    return run


def _filling(step: ProgramStep) -> ProgramStep:
    """Turn a constant into a vector as long as the first argument; other steps stay unchanged."""
    if step.op.name not in CONSTANTS:
        return step
    return replace(step, kernel=on_one(lambda like: np.full(like.shape, step.kernel()[0])), operands=(0,))


def _one_by_one(program: BlockProgram, vectors: tuple[Array, ...], captured: tuple[Array, ...]) -> tuple[Array, ...]:
    dtypes = [dtype_at(value) for value in program.end.operands]
    results = [np.empty(vectors[0].shape, dtype) for dtype in dtypes]
    for index in range(vectors[0].size):
        elements = (np.asarray(vector[index]) for vector in vectors)
        for result, element in zip(results, program.run(*elements, *captured), strict=True):
            result[index] = element
    return tuple(results)
