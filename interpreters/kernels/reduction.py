"""`stablehlo.reduce`: one numpy call for a region that is one operation, element after element for any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.ir import Block, OpResult, SSAValue

from ...dialects.elements import DType
from ...dialects.marks import is_mark
from ...dialects.recompute import DependOp
from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.control import OptimizationBarrierOp, ReturnOp
from ...dialects.stablehlo.reduction import ReduceOp
from .arrays import Array, Combine, Kernel, dtype_at, kind_of, owned, row_by_row, wide
from .conversion import convert
from .elementwise import compute_for

Arrays: TypeAlias = Sequence[Array]
ReduceRows: TypeAlias = Callable[[Arrays, Arrays, Arrays], Arrays]
"""From tables, initial values and captures to one element for each row of the tables."""

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
    """The order of elements is implementation-defined: numpy's pairwise sums are comparatively exact."""
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
        return tuple(owned(np.reshape(row, to), dtype) for row, (to, dtype) in zip(reduced, results, strict=True))

    return run


def rows_reducer(block: Block, dtype: DType, combine: Combine) -> ReduceRows:
    """The reducer of rows for a region with results of type `dtype`."""
    combiner = single_combiner(block)
    return _fold(combine) if combiner is None else _with_ufunc(combiner, dtype)


def single_combiner(block: Block) -> str | None:
    """The name of the operation, where the region computes one commutative operation of its two arguments. Barriers,
    marks and operations that nothing reads do not count, as they do not for the proof: elements that are combined in
    another order have other bits."""
    last = block.last_op
    if not isinstance(last, ReturnOp) or len(last.operands) != 1 or len(block.args) != 2:
        return None
    made = _seen_through(last.operands[0])
    if not isinstance(made, OpResult) or made.op.name not in UFUNCS:
        return None
    return made.op.name if {_seen_through(operand) for operand in made.op.operands} == set(block.args) else None


def _seen_through(value: SSAValue) -> SSAValue:
    """The source of a value behind barriers, dependencies and marks."""
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
    """Correct zeros: for zeros of both signs numpy returns either as maximum or minimum, unlike IEEE 754."""
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
