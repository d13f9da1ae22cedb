"""Elementwise operations, a line each, by their names in StableHLO: numpy functions by kind of element."""

from __future__ import annotations

from functools import partial

import numpy as np
from xdsl.ir import Operation

from ...dialects.elements import DType, bit_width
from ...dialects.stablehlo.elementwise import ClampOp, CompareOp
from . import arithmetic, complex_numbers
from .arrays import Array, Compute, Kernel, dtype_at, kind_of, on_one, on_two, owned, row_by_row, wide
from .conversion import convert

# Exact whatever the layout, and for every kind of element.
EXACT: dict[str, Compute] = {
    "abs": np.abs,
    "is_finite": np.isfinite,
    "real": np.real,
    "imag": np.imag,
    "negate": np.negative,
    "not": np.invert,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
FLOAT: dict[str, Compute] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round_nearest_afz": arithmetic.round_half_away_from_zero,
    "round_nearest_even": np.rint,
    "sign": arithmetic.sign,
    "sqrt": np.sqrt,
    "divide": np.divide,
    "maximum": arithmetic.maximum,
    "minimum": arithmetic.minimum,
    "remainder": np.fmod,
}
# numpy may evaluate these with other instructions if the operand is not row-major.
ROUNDED: dict[str, Compute] = {
    "cbrt": np.cbrt,
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": arithmetic.logistic,
    "rsqrt": arithmetic.rsqrt,
    "sine": np.sin,
    "tan": np.tan,
    "tanh": np.tanh,
    "atan2": np.arctan2,
    "power": np.power,
}
COMPLEX: dict[str, Compute] = {
    "cbrt": complex_numbers.cbrt,
    "sign": complex_numbers.sign,
    "sqrt": np.sqrt,
    "divide": complex_numbers.divide,
    "exponential": complex_numbers.exponential,
    "exponential_minus_one": complex_numbers.exponential_minus_one,
    "log_plus_one": complex_numbers.log_plus_one,
    "logistic": complex_numbers.logistic,
    "power": complex_numbers.power,
    "rsqrt": complex_numbers.rsqrt,
    "atan2": complex_numbers.atan2,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
INTEGER: dict[str, Compute] = {
    "sign": np.sign,
    "divide": arithmetic.divide_integers,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": arithmetic.power_of_integers,
    "remainder": arithmetic.remainder_of_integers,
    # numpy shifts beyond the width as StableHLO does: zeros remain.
    "shift_left": np.left_shift,
}
# These also take the number of bits, by the name `width`.
BITS: dict[str, Compute] = {
    "count_leading_zeros": arithmetic.count_leading_zeros,
    "popcnt": arithmetic.count_ones,
    "shift_right_arithmetic": arithmetic.shift_right_arithmetic,
    "shift_right_logical": arithmetic.shift_right_logical,
}
BY_TABLE = EXACT.keys() | FLOAT.keys() | ROUNDED.keys() | INTEGER.keys() | BITS.keys()


def compute_for(op: str, dtype: DType) -> Compute | None:
    """The function of the operation on elements of `dtype`, in the wider type; None if it is not defined."""
    if op in EXACT:
        return EXACT[op]
    kind = kind_of(dtype)
    if kind in "iub":
        return partial(BITS[op], width=bit_width(dtype)) if op in BITS else INTEGER.get(op)
    if kind == "c":
        return COMPLEX.get(op) or ROUNDED.get(op)
    return FLOAT.get(op) or ROUNDED.get(op)


def computed_in(dtype: DType) -> DType:
    """Functions of complex numbers are computed in f64 and rounded once, whatever their type, as in the reference."""
    return np.dtype(np.complex128) if kind_of(dtype) == "c" else wide(dtype)


def from_tables(op: Operation) -> Kernel:
    return named(op.name.removeprefix("stablehlo."), op)


def named(name: str, op: Operation) -> Kernel:
    """The kernel of the StableHLO operation `name`, for an operation of any dialect."""
    dtype, result = dtype_at(op.operands[0]), dtype_at(op.results[0])
    compute = compute_for(name, dtype)
    if compute is None:
        raise ValueError(f"{op.name} is not defined for elements of type {dtype}")
    working = wide(dtype) if name in EXACT else computed_in(dtype)
    if not isinstance(compute, np.ufunc) or working != dtype:
        return lambda *operands: (owned(compute(*(row_by_row(operand, working) for operand in operands)), result),)
    if name in ROUNDED:
        return lambda *operands: (_apply(compute, tuple(map(row_by_row, operands)), result),)
    return lambda *operands: (_apply(compute, operands, result),)


def _apply(compute: np.ufunc, operands: tuple[Array, ...], dtype: DType) -> Array:
    return compute(*operands, out=np.empty(operands[0].shape, dtype))


RELATIONS: dict[str, Compute] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


def compare(op: CompareOp) -> Kernel:
    relation = RELATIONS[op.comparison_direction.data.value]
    total = op.compare_type is not None and op.compare_type.data.value == "TOTALORDER"
    dtype = dtype_at(op.lhs)
    if total and kind_of(dtype) == "f":
        prepared = total_order
    elif wide(dtype) != dtype:
        prepared = partial(row_by_row, dtype=wide(dtype))
    else:
        return on_two(lambda a, b: relation(a, b, out=np.empty(a.shape, np.bool_)))
    return on_two(lambda a, b: owned(relation(prepared(a), prepared(b)), np.dtype(np.bool_)))


def total_order(a: Array) -> Array:
    """Integers in the order -NaN < -inf < … < -0.0 < 0.0 < … < inf < NaN of the floats (IEEE 754, totalOrder)."""
    width = bit_width(a.dtype)
    bits = row_by_row(a).view(f"u{a.dtype.itemsize}").astype(np.int64)
    # Below eight bytes the sign is extended by hand; the bits of an f64 are those of an i64 already.
    signed = bits - ((bits >> (width - 1) & 1) << width) if width < 64 else bits
    return np.where(signed < 0, signed ^ np.int64((1 << (width - 1)) - 1), signed)


def select(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])

    def run(which: Array, on_true: Array, on_false: Array) -> tuple[Array, ...]:
        result = np.empty(on_true.shape, dtype)
        np.copyto(result, on_false)
        np.copyto(result, on_true, where=which)
        return (result,)

    return run


def clamp(op: ClampOp) -> Kernel:
    dtype = dtype_at(op.operand)
    lowest, highest = compute_for("maximum", dtype), compute_for("minimum", dtype)
    assert lowest is not None and highest is not None, "maximum and minimum are defined for all elements"

    def run(*operands: Array) -> tuple[Array, ...]:
        low, value, high = (np.asarray(operand, wide(dtype)) for operand in operands)
        return (owned(highest(lowest(value, low), high), dtype),)

    return run


def complex_of_parts(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])

    def run(real: Array, imaginary: Array) -> Array:
        result = np.empty(real.shape, dtype)
        result.real, result.imag = real, imaginary
        return result

    return on_two(run)


def convert_elements(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])
    return on_one(lambda operand: owned(convert(operand, dtype), dtype))
