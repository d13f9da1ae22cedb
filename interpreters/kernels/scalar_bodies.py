"""Kernels of StableHLO operations with a region on scalars: `map`, `reduce` and `sort`.

A reduction with a single operation is one numpy call. A sort is a merge sort of all lines at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...dialects.constants.elements import DType
from ...dialects.mark_calls import is_mark
from ...dialects.recompute import DependOp
from ...dialects.stablehlo.branches import SortOp
from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.control import OptimizationBarrierOp, ReturnOp
from ...dialects.stablehlo.reduction import ReduceOp
from .arrays import Array, Combine, Kernel, as_owned, dtype_at, kind_of, row_by_row, shape_at, wide
from .conversion import convert
from .elementwise import compute_for
from .merge_sort import merge_sort


def map_(op: Operation, combine: Combine) -> Kernel:
    """Make the kernel of `stablehlo.map`. Raises `ValueError` if the region does not match the operands. xDSL does not
    verify this."""
    count = len(op.operands)
    shape = shape_at(op.results[0])
    dtypes = [dtype_at(result) for result in op.results]
    element_types = [dtype_at(argument) for argument in op.regions[0].block.args]
    if element_types != [dtype_at(operand) for operand in op.operands] or any(
        shape_at(operand) != shape for operand in op.operands
    ):
        raise ValueError(
            "its region must take one element of each operand, and operands and result must have the same shape"
        )

    def run(*operands: Array) -> tuple[Array, ...]:
        vectors = [row_by_row(operand).reshape(-1) for operand in operands[:count]]
        results = combine(*vectors, *operands[count:])
        return tuple(as_owned(np.reshape(values, shape), dtype) for values, dtype in zip(results, dtypes, strict=True))

    return run


Arrays: TypeAlias = Sequence[Array]
ReduceRows: TypeAlias = Callable[[Arrays, Arrays, Arrays], Arrays]
"""A function of tables, initial values and captures. It returns one element for each row of each table."""

UFUNCS: dict[str, np.ufunc] = {
    "stablehlo.add": np.add,
    "stablehlo.multiply": np.multiply,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.and": np.bitwise_and,
    "stablehlo.or": np.bitwise_or,
    "stablehlo.xor": np.bitwise_xor,
}


def reduce(op: ReduceOp, combine: Combine) -> Kernel:
    """Make the kernel of `stablehlo.reduce`. The order in which elements are combined is implementation-defined; numpy
    sums pairwise."""
    dimensions = op.dimensions.get_values()
    shape, count = shape_of(op.inputs[0]), len(op.inputs)
    kept = [dimension for dimension in range(len(shape)) if dimension not in dimensions]
    order = (*kept, *dimensions)
    table = prod(shape[d] for d in kept), prod(shape[d] for d in dimensions)
    results = [(shape_of(result), dtype_at(result)) for result in op.result]
    reduce_rows = rows_reducer(op.body.block, results[0][1], combine)

    def run(*operands: Array) -> tuple[Array, ...]:
        tables = [row_by_row(operand.transpose(order)).reshape(table) for operand in operands[:count]]
        reduced = reduce_rows(tables, operands[count : 2 * count], operands[2 * count :])
        return tuple(as_owned(np.reshape(row, to), dtype) for row, (to, dtype) in zip(reduced, results, strict=True))

    return run


def rows_reducer(block: Block, dtype: DType, combine: Combine) -> ReduceRows:
    """Return a function that reduces each row of a table with a region, whose results have type `dtype`.

    Args:
        block: The block of the region.
        dtype: The element type of the results.
        combine: The region as a function on vectors.
    """
    combiner = single_combiner(block)
    return _fold(combine) if combiner is None else _with_ufunc(combiner, dtype)


def single_combiner(block: Block) -> str | None:
    """Return the name of the operation if the region only applies one commutative operation to its two arguments, else
    None.

    Barriers, marks and unused operations are ignored, as in the proof. Otherwise, such an operation would change the
    order in which elements are combined, and therefore the bits of the result.
    """
    last = block.last_op
    if not isinstance(last, ReturnOp) or len(last.operands) != 1 or len(block.args) != 2:
        return None
    made = _look_through(last.operands[0])
    if not isinstance(made, OpResult) or made.op.name not in UFUNCS:
        return None
    return made.op.name if {_look_through(operand) for operand in made.op.operands} == set(block.args) else None


def _look_through(value: SSAValue) -> SSAValue:
    """Return the value that reaches `value` through barriers, `depend` operations and marks."""
    while isinstance(value, OpResult):
        if not isinstance(value.op, OptimizationBarrierOp | DependOp) and not is_mark(value.op):
            break
        value = value.op.operands[value.index]
    return value


def _with_ufunc(combiner: str, dtype: DType) -> ReduceRows:
    ufunc, working = UFUNCS[combiner], wide(dtype)
    combine_two = compute_for(combiner.removeprefix("stablehlo."), dtype)
    signs = kind_of(dtype) == "f" and ufunc in (np.maximum, np.minimum)
    assert combine_two is not None, "the operation is defined for the element type"

    def run(tables: Arrays, inits: Arrays, captured: Arrays) -> Arrays:
        rows = tables[0] if tables[0].dtype == working else convert(tables[0], working)
        init = np.asarray(inits[0], working)
        if rows.shape[1] == 0:
            return [np.broadcast_to(init, rows.shape[:1])]
        reduced: Array = ufunc.reduce(rows, axis=1, dtype=working)
        signed = _with_signs_of_zeros(reduced, rows, ufunc) if signs else reduced
        combined: Array = combine_two(signed, init)
        return [combined]

    return run


def _with_signs_of_zeros(extreme: Array, rows: Array, ufunc: np.ufunc) -> Array:
    """Return maxima or minima with the signs of zeros that IEEE 754 requires. If the operands are zeros of both signs,
    numpy may return either zero."""
    zero = extreme == 0
    if not np.any(zero):
        return extreme
    negative = np.signbit(rows) | (rows != 0)
    least = ufunc is np.minimum
    has_other = np.any((rows == 0) & np.signbit(rows), axis=1) if least else ~np.all(negative, axis=1)
    return np.where(zero, np.where(has_other == least, -0.0, 0.0), extreme).astype(extreme.dtype)


def _fold(combine: Combine) -> ReduceRows:
    def run(tables: Arrays, inits: Arrays, captured: Arrays) -> Arrays:
        count, length = tables[0].shape
        reduced = tuple(np.full(count, init) for init in inits)
        for index in range(length):
            reduced = combine(*reduced, *(table[:, index] for table in tables), *captured)
        return reduced

    return run


def sort(op: SortOp, combine: Combine) -> Kernel:
    """Make the kernel of `stablehlo.sort`. The sort is always stable, even if the operation does not require this."""
    count, shape = len(op.inputs), shape_of(op.inputs[0])
    along = (op.dimension.value.data if op.dimension is not None else -1) % max(len(shape), 1)
    length = shape[along]
    lines = prod(shape) // length if length else 0

    def run(*operands: Array) -> tuple[Array, ...]:
        flat = [row_by_row(np.moveaxis(operand, along, -1)).reshape(-1) for operand in operands[:count]]

        def precedes(left: Array, right: Array) -> Array:
            pairs = [values[positions].reshape(-1) for values in flat for positions in (left, right)]
            return combine(*pairs, *operands[count:])[0].reshape(left.shape)

        order = merge_sort(np.arange(lines * length).reshape(lines, length), precedes)
        moved = (*(extent for d, extent in enumerate(shape) if d != along), length)
        return tuple(np.array(np.moveaxis(values[order].reshape(moved), -1, along), order="C") for values in flat)

    return run
