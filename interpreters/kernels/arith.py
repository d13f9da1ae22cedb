"""Kernels of the arith dialect, on tensors and on scalars."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.arith import CmpfOp, CmpiOp
from xdsl.ir import Operation

from ...dialects.elements import bit_width
from .arrays import Array, Compute, Kernel, dtype_at, kind_of, on_one, on_two, owned, row_by_row, wide
from .conversion import convert
from .elementwise import named
from .signless import RELATIONS, read_signed, read_unsigned, wrapped

# Their names in StableHLO.
AS_STABLEHLO = {
    "arith.addf": "add",
    "arith.subf": "subtract",
    "arith.mulf": "multiply",
    "arith.divf": "divide",
    "arith.negf": "negate",
    "arith.maximumf": "maximum",
    "arith.minimumf": "minimum",
}
# A number wins over NaN.
NUMBERS_FIRST: dict[str, Compute] = {"arith.maxnumf": np.fmax, "arith.minnumf": np.fmin}
# By the last two letters of the predicates of `arith.cmpf`.
FLOAT_RELATIONS: dict[str, Compute] = {
    "eq": np.equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "ne": np.not_equal,
}
FLOAT_PREDICATES = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()
BOOL = np.dtype(np.bool_)


def as_stablehlo(op: Operation) -> Kernel:
    return named(AS_STABLEHLO[op.name], op)


def numbers_first(op: Operation) -> Kernel:
    compute, dtype = NUMBERS_FIRST[op.name], dtype_at(op.results[0])
    return on_two(lambda a, b: owned(compute(row_by_row(a, wide(dtype)), row_by_row(b, wide(dtype))), dtype))


def compare_integers(op: CmpiOp) -> Kernel:
    read, relation = RELATIONS[op.predicate.value.data]
    return on_two(lambda a, b: owned(relation(read(a), read(b)), BOOL))


def compare_floats(op: CmpfOp) -> Kernel:
    predicate, dtype = FLOAT_PREDICATES[op.predicate.value.data], wide(dtype_at(op.lhs))
    return on_two(lambda a, b: owned(_related(predicate, row_by_row(a, dtype), row_by_row(b, dtype)), BOOL))


def _related(predicate: str, a: Array, b: Array) -> Array:
    unordered = np.isnan(a) | np.isnan(b)
    match predicate:
        case "false" | "true":
            return np.full(unordered.shape, predicate == "true")
        case "ord" | "uno":
            return unordered == (predicate == "uno")
        case _:
            ordered = FLOAT_RELATIONS[predicate[1:]](a, b)
            return ordered & ~unordered if predicate[0] == "o" else ordered | unordered


def from_signed(op: Operation) -> Kernel:
    """Convert to wider or narrower integers, or to the nearest float."""
    return _from_integers(op, read_signed)


def from_unsigned(op: Operation) -> Kernel:
    return _from_integers(op, read_unsigned)


def _from_integers(op: Operation, read: Callable[[Array], Array]) -> Kernel:
    dtype = dtype_at(op.results[0])
    if kind_of(dtype) == "f":
        return on_one(lambda a: owned(convert(read(a), dtype), dtype))
    return on_one(lambda a: wrapped(read(a), dtype))


def to_whole(op: Operation) -> Kernel:
    """Round towards zero; values out of range, which are undefined, become the nearest number."""
    dtype = dtype_at(op.results[0])
    width = bit_width(dtype)
    working = np.dtype(f"u{dtype.itemsize}") if op.name == "arith.fptoui" and width >= 8 else dtype
    return on_one(lambda a: owned(convert(a, working), working).view(dtype))


def between_floats(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])
    return on_one(lambda a: owned(convert(a, dtype), dtype))


def bitcast(op: Operation) -> Kernel:
    source, target = dtype_at(op.operands[0]), dtype_at(op.results[0])
    if bit_width(source) != 8 * source.itemsize:
        raise ValueError("elements below a byte are not reinterpreted")
    return on_one(lambda a: owned(row_by_row(a).view(target), target))
