"""Kernels of the arith and math dialects, on tensors and on scalars.

Integers are signless: each operation determines how it interprets the bits, and its result wraps around. As a signed
integer, a true i1 is -1. Where MLIR leaves the behaviour undefined, a kernel either raises `ValueError` (division by
zero) or follows two's complement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from xdsl.dialects.arith import CmpfOp, CmpiOp
from xdsl.ir import Operation

from ...dialects.constants.elements import DType, bit_width
from . import elementwise
from .arrays import Array, Compute, Kernel, as_owned, dtype_at, kind_of, on_one, on_two, row_by_row, wide
from .conversion import convert
from .elementwise import as_unsigned, kernel_named


def read_signed(values: Array) -> Array:
    if values.dtype == np.bool_:
        return -values.astype(np.int8)
    return values.astype(np.int8) if bit_width(values.dtype) < 8 else values


def read_unsigned(values: Array) -> Array:
    signed = read_signed(values)
    return as_unsigned(signed, bit_width(values.dtype))


def wrap(values: Array, dtype: DType) -> Array:
    """Return the low bits of wider integers as elements of `dtype`."""
    if dtype == np.bool_:
        return as_owned(np.asarray(values) & 1 != 0, dtype)
    return as_owned(np.asarray(values), dtype)


def _divide(a: Array, b: Array) -> Array:
    return np.floor_divide(a - np.fmod(a, b), b)


def _divide_up(a: Array, b: Array) -> Array:
    return np.floor_divide(a, b) + (np.remainder(a, b) != 0).astype(a.dtype)


SIGNED: dict[str, Compute] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": np.left_shift,
    "shrsi": np.right_shift,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "divsi": _divide,
    "floordivsi": np.floor_divide,
    "ceildivsi": _divide_up,
    "remsi": np.fmod,
}
UNSIGNED: dict[str, Compute] = {
    "shrui": np.right_shift,
    "minui": np.minimum,
    "maxui": np.maximum,
    "divui": np.floor_divide,
    "ceildivui": _divide_up,
    "remui": np.remainder,
}
DIVISIONS = frozenset("divsi floordivsi ceildivsi remsi divui ceildivui remui".split())
RELATIONS: tuple[tuple[Callable[[Array], Array], Compute], ...] = (
    (read_signed, np.equal),
    (read_signed, np.not_equal),
    (read_signed, np.less),
    (read_signed, np.less_equal),
    (read_signed, np.greater),
    (read_signed, np.greater_equal),
    (read_unsigned, np.less),
    (read_unsigned, np.less_equal),
    (read_unsigned, np.greater),
    (read_unsigned, np.greater_equal),
)
"""The interpretation of the bits and the comparison, by the predicate of `arith.cmpi`."""


def integer(op: Operation) -> Kernel:
    name = op.name.partition(".")[2]
    dtype = dtype_at(op.results[0])
    read, compute = (read_signed, SIGNED[name]) if name in SIGNED else (read_unsigned, UNSIGNED[name])

    def run(a: Array, b: Array) -> tuple[Array, ...]:
        if name in DIVISIONS and np.any(b == 0):
            raise ValueError("a divisor is 0, and integer division by 0 is undefined")
        return (wrap(compute(read(a), read(b)), dtype),)

    return run


def extended_arithmetic(op: Operation) -> Kernel:
    """Make the kernel of an operation that returns the low and the high half of a sum or product. The kernel computes
    with Python integers."""
    width, (low, high) = bit_width(dtype_at(op.operands[0])), (dtype_at(result) for result in op.results)
    read = read_signed if op.name == "arith.mulsi_extended" else read_unsigned
    compute = np.add if op.name == "arith.addui_extended" else np.multiply

    def half(values: Array, dtype: DType) -> Array:
        bits = np.asarray(values & ((1 << width) - 1), dtype=object).astype(np.uint64)
        return wrap(bits.astype(np.int64), dtype)

    def run(a: Array, b: Array) -> tuple[Array, ...]:
        exact = np.asarray(compute(read(a).astype(object), read(b).astype(object)), dtype=object)
        return half(exact, low), half(np.asarray(exact >> width, dtype=object), high)

    return run


# The StableHLO operations that have the same kernels.
AS_STABLEHLO = {
    "arith.addf": "add",
    "arith.subf": "subtract",
    "arith.mulf": "multiply",
    "arith.divf": "divide",
    "arith.remf": "remainder",
    "arith.negf": "negate",
    "arith.maximumf": "maximum",
    "arith.minimumf": "minimum",
}
# If one operand is NaN, the result is the other operand.
NUMBERS_FIRST: dict[str, Compute] = {"arith.maxnumf": np.fmax, "arith.minnumf": np.fmin}
# The comparisons by the last two letters of the predicates of `arith.cmpf`.
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
    return kernel_named(AS_STABLEHLO[op.name], op)


def numbers_first(op: Operation) -> Kernel:
    compute = NUMBERS_FIRST[op.name]
    dtype = dtype_at(op.results[0])
    return on_two(lambda a, b: as_owned(compute(row_by_row(a, wide(dtype)), row_by_row(b, wide(dtype))), dtype))


def compare_integers(op: CmpiOp) -> Kernel:
    read, relation = RELATIONS[op.predicate.value.data]
    return on_two(lambda a, b: as_owned(relation(read(a), read(b)), BOOL))


def compare_floats(op: CmpfOp) -> Kernel:
    predicate = FLOAT_PREDICATES[op.predicate.value.data]
    dtype = wide(dtype_at(op.lhs))
    return on_two(lambda a, b: as_owned(_compare(predicate, row_by_row(a, dtype), row_by_row(b, dtype)), BOOL))


def _compare(predicate: str, a: Array, b: Array) -> Array:
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
    """Make the kernel that converts signed integers to integers of a different width or to the nearest floats."""
    return _from_integers(op, read_signed)


def from_unsigned(op: Operation) -> Kernel:
    """Make the kernel that converts unsigned integers to integers of a different width or to the nearest floats."""
    return _from_integers(op, read_unsigned)


def _from_integers(op: Operation, read: Callable[[Array], Array]) -> Kernel:
    dtype = dtype_at(op.results[0])
    if kind_of(dtype) == "f":
        return on_one(lambda a: as_owned(convert(read(a), dtype), dtype))
    return on_one(lambda a: wrap(read(a), dtype))


def to_whole(op: Operation) -> Kernel:
    """Make the kernel of a conversion from floats to integers, which rounds towards zero.

    Values that are out of range become the nearest integer; MLIR leaves their results undefined.
    """
    dtype = dtype_at(op.results[0])
    width = bit_width(dtype)
    working = np.dtype(f"u{dtype.itemsize}") if op.name == "arith.fptoui" and width >= 8 else dtype
    return on_one(lambda a: as_owned(convert(a, working), working).view(dtype))


def between_floats(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])
    return on_one(lambda a: as_owned(convert(a, dtype), dtype))


def bitcast(op: Operation) -> Kernel:
    source, target = dtype_at(op.operands[0]), dtype_at(op.results[0])
    if bit_width(source) != 8 * source.itemsize:
        raise ValueError(f"elements of type {source} do not fill whole bytes, so their bits cannot be reinterpreted")
    return on_one(lambda a: as_owned(row_by_row(a).view(target), target))


# The StableHLO operations that have the same kernels.
MATH_AS_STABLEHLO = {
    "math.absf": "abs",
    "math.atan2": "atan2",
    "math.cbrt": "cbrt",
    "math.ceil": "ceil",
    "math.cos": "cosine",
    "math.exp": "exponential",
    "math.expm1": "exponential_minus_one",
    "math.floor": "floor",
    "math.log": "log",
    "math.log1p": "log_plus_one",
    "math.powf": "power",
    "math.round": "round_nearest_afz",
    "math.roundeven": "round_nearest_even",
    "math.rsqrt": "rsqrt",
    "math.sin": "sine",
    "math.sqrt": "sqrt",
    "math.tan": "tan",
    "math.tanh": "tanh",
}
FLOATS: dict[str, Compute] = {
    "math.acos": np.arccos,
    "math.acosh": np.arccosh,
    "math.asin": np.arcsin,
    "math.asinh": np.arcsinh,
    "math.atan": np.arctan,
    "math.atanh": np.arctanh,
    "math.copysign": np.copysign,
    "math.cosh": np.cosh,
    "math.erf": np.vectorize(math.erf, otypes=[np.float64]),
    "math.exp2": np.exp2,
    "math.log10": np.log10,
    "math.log2": np.log2,
    "math.sinh": np.sinh,
    "math.trunc": np.trunc,
}
# Functions that also take the number of bits, as `width`.
BITS: dict[str, Compute] = {
    "math.ctlz": elementwise.count_leading_zeros,
    "math.ctpop": elementwise.count_ones,
    "math.cttz": elementwise.count_trailing_zeros,
}


def math_as_stablehlo(op: Operation) -> Kernel:
    return kernel_named(MATH_AS_STABLEHLO[op.name], op)


def of_floats(op: Operation) -> Kernel:
    """Make the kernel of a function of floats. For types smaller than f32, the kernel computes in f32 and rounds
    once."""
    compute, dtype = FLOATS[op.name], dtype_at(op.results[0])
    return lambda *operands: (as_owned(compute(*(row_by_row(operand, wide(dtype)) for operand in operands)), dtype),)


def of_bits(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])
    count = partial(BITS[op.name], width=bit_width(dtype))
    return on_one(lambda a: wrap(count(row_by_row(read_signed(a))), dtype))


def absolute(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])
    return on_one(lambda a: wrap(np.abs(read_signed(a)), dtype))


def integer_power(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])
    return on_two(lambda a, b: wrap(elementwise.power_of_integers(read_signed(a), read_signed(b)), dtype))


def float_to_integer_power(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])

    def run(base: Array, exponent: Array) -> tuple[Array, ...]:
        bases = row_by_row(base, wide(dtype))
        return (as_owned(np.power(bases, row_by_row(exponent).astype(bases.dtype)), dtype),)

    return run


def fused_multiply_add(op: Operation) -> Kernel:
    """Make the kernel of `math.fma`, which rounds only once. Raises `ValueError` for f64, because numpy has no type for
    exact products of f64."""
    dtype = dtype_at(op.results[0])
    if dtype.itemsize > 4:
        raise ValueError("the interpreter supports math.fma only for f32 and smaller floats, not for f64")

    def run(a: Array, b: Array, c: Array) -> tuple[Array, ...]:
        return (as_owned(elementwise.round_sum_of_product(a, b, c, dtype), dtype),)

    return run
