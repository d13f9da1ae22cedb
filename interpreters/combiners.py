"""Make functions that apply a region on scalars, such as the body of a reduction, to vectors of elements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from xdsl.ir import Block

from .block_programs import BlockProgram, ProgramStep
from .kernels.arrays import Array, Combine, dtype_at, on_one, shape_at
from .kernels.conversion import convert
from .kernels.table import ELEMENTWISE

CONSTANTS = frozenset({"stablehlo.constant", "arith.constant"})


def combiner(program: BlockProgram, block: Block, numbers: int = 0) -> Combine:
    """Return a function that applies a region on scalars to vectors of elements.

    The function computes all elements at once if every operation in the region is elementwise, otherwise one after
    another.

    Args:
        program: The compiled block, which takes the arguments of the block, `numbers` loop indices, and the captures,
            which are the same for all elements.
        block: The block of the region.
        numbers: Number of loop indices.

    Raises:
        ValueError: An argument of the block has dimensions.
    """
    if any(shape_at(argument) for argument in block.args):
        raise ValueError("its region combines tensors; the interpreter supports only regions that combine scalars")
    dtypes = [dtype_at(argument) for argument in block.args]
    vectors = len(dtypes) + numbers
    at_once = all(step.op.name in ELEMENTWISE or step.op.name in CONSTANTS for step in program.steps)
    filled = replace(program, steps=tuple(map(_with_filled_constants, program.steps))) if at_once else program

    def run(*values: Array) -> tuple[Array, ...]:
        vector_arguments = [
            convert(value, to) if value.dtype != to else value for value, to in zip(values, dtypes, strict=False)
        ]
        vector_arguments += values[len(dtypes) : vectors]
        if at_once:
            return filled.run(*np.broadcast_arrays(*vector_arguments, *values[vectors:]))
        return _run_each(program, np.broadcast_arrays(*vector_arguments), values[vectors:])

    return run


def _with_filled_constants(step: ProgramStep) -> ProgramStep:
    """If `step` is a constant, return a step that fills a vector with it; the vector is as long as the first argument.
    Return any other step unchanged."""
    if step.op.name not in CONSTANTS:
        return step
    return replace(step, kernel=on_one(lambda like: np.full(like.shape, step.kernel()[0])), operands=(0,))


def _run_each(program: BlockProgram, vectors: tuple[Array, ...], captured: tuple[Array, ...]) -> tuple[Array, ...]:
    dtypes = [dtype_at(value) for value in program.end.operands]
    results = [np.empty(vectors[0].shape, dtype) for dtype in dtypes]
    for index in range(vectors[0].size):
        elements = (np.asarray(vector[index]) for vector in vectors)
        for result, element in zip(results, program.run(*elements, *captured), strict=True):
            result[index] = element
    return tuple(results)
