"""Kernels of elementwise operations, in tables by the StableHLO name and the kind of the elements.

Most entries are numpy functions. This module implements the operations for which StableHLO and numpy differ.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from xdsl.ir import Operation

from ...dialects.constants.elements import DType, bit_width, round_to
from ...dialects.stablehlo.compare_select import ClampOp, CompareOp
from . import complex_numbers
from .arrays import Array, Compute, Kernel, as_owned, dtype_at, kind_of, on_one, on_two, row_by_row, wide
from .conversion import convert


def maximum(a: Array, b: Array) -> Array:
    """Compute the `maximum` of IEEE 754-2019. Unlike in numpy, -0.0 is less than 0.0. NaN propagates."""
    larger = np.maximum(a, b)
    zero = _both_zero(a, b)
    return np.where(zero, a + b, larger) if zero.any() else larger


def minimum(a: Array, b: Array) -> Array:
    """Compute the `minimum` of IEEE 754-2019. Unlike in numpy, -0.0 is less than 0.0. NaN propagates."""
    smaller = np.minimum(a, b)
    zero = _both_zero(a, b)
    return np.where(zero, -(-a - b), smaller) if zero.any() else smaller


def _both_zero(a: Array, b: Array) -> Array:
    return np.asarray((a == 0) & (b == 0))


def sign(a: Array) -> Array:
    """Return -1 or 1 for each element, or the element itself if it is zero or NaN."""
    return np.where((a == 0) | np.isnan(a), a, np.copysign(a.dtype.type(1), a))


def round_half_away_from_zero(a: Array) -> Array:
    whole = np.trunc(a)
    return whole + np.where(np.abs(a - whole) >= 0.5, np.copysign(a.dtype.type(1), a), np.copysign(a.dtype.type(0), a))


def rsqrt(a: Array) -> Array:
    return np.reciprocal(np.sqrt(a))


def logistic(a: Array) -> Array:
    return np.reciprocal(a.dtype.type(1) + np.exp(-a))


def divide_integers(a: Array, b: Array) -> Array:
    """Divide, rounding towards zero. As in XLA, division by zero sets all bits, and the smallest number divided by -1
    is the smallest number."""
    # The division is exact, because the remainder is subtracted first. The smallest number divided by -1 wraps around.
    quotient = np.floor_divide(a - np.fmod(a, b), b)
    return np.where(b == 0, np.invert(np.zeros_like(b)), quotient)


def remainder_of_integers(a: Array, b: Array) -> Array:
    """Return the remainder, which has the sign of the dividend. As in XLA, the remainder is the dividend if the divisor
    is zero."""
    return np.where(b == 0, a, np.fmod(a, b))


def power_of_integers(base: Array, exponent: Array) -> Array:
    """Compute powers by repeated squaring, modulo `2**width`, where `width` is the width of the type in bits.

    For a negative exponent, the power is rounded towards zero; the power is 0 if the base is 0.
    """
    result = np.ones_like(base)
    square = base.copy()
    left = np.where(exponent < 0, 0, exponent)
    while np.any(left):
        result = np.where((left & 1) == 1, result * square, result)
        square, left = square * square, left >> 1
    odd = (exponent & 1) == 1
    fraction = np.where(base == 1, 1, np.where((base < 0) & (base + 1 == 0), np.where(odd, -1, 1), 0))
    return np.where(exponent < 0, fraction.astype(base.dtype), result)


def as_unsigned(a: Array, width: int) -> Array:
    """Reinterpret integers of `width` bits as unsigned integers, in a type that may be wider."""
    bits = a.view(f"u{a.dtype.itemsize}")
    return bits & ((1 << width) - 1) if width < 8 * a.dtype.itemsize else bits


def shift_right_logical(a: Array, amount: Array, width: int) -> Array:
    """Shift right and fill with zeros. If the amount is negative or not less than the width, the result is zero."""
    shifted = np.right_shift(as_unsigned(a, width), as_unsigned(amount, width))
    return np.asarray(shifted).view(a.dtype)


def shift_right_arithmetic(a: Array, amount: Array, width: int) -> Array:
    """Shift right and fill with the highest bit, even for unsigned integers.

    If the amount is negative or not less than the width, all bits equal the highest bit.
    """
    above = 8 * a.dtype.itemsize - width
    signed = a.view(f"i{a.dtype.itemsize}") << above >> above
    return np.asarray(np.right_shift(signed, as_unsigned(amount, width).view(signed.dtype))).view(a.dtype)


def count_ones(a: Array, width: int) -> Array:
    bits = np.asarray(as_unsigned(a, width), order="C")
    columns = bits.reshape(*bits.shape, 1).view(np.uint8)
    return np.unpackbits(columns, axis=-1).sum(-1, dtype=a.dtype)


def count_leading_zeros(a: Array, width: int) -> Array:
    bits = np.asarray(as_unsigned(a, width))
    step = 1
    while step < width:
        bits = bits | (bits >> step)
        step *= 2
    return a.dtype.type(width) - count_ones(np.asarray(bits).view(a.dtype), width)


def count_trailing_zeros(a: Array, width: int) -> Array:
    bits = as_unsigned(a, width)
    below = np.bitwise_and(~bits, bits - bits.dtype.type(1))
    return count_ones(np.asarray(below).view(a.dtype), width)


def round_sum_of_product(a: Array, b: Array, c: Array, dtype: DType) -> Array:
    """Compute `a * b + c`, rounded once to `dtype` (f32 or smaller).

    The product is exact in f64. The sum is rounded to odd in f64, with the error from Knuth's TwoSum, so that the
    second rounding is correct (Boldo and Melquiond, 2008).
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = np.asarray(product + addend)
    back = total - product
    error = (product - (total - back)) + (addend - back)
    even = total.view(np.uint64) % np.uint64(2) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    off = (error != 0) & np.isfinite(total) & np.isfinite(error) & even
    return round_to(np.where(off, np.nextafter(total, towards), total), dtype)


# Operations whose results do not depend on the layout, for all kinds of elements.
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
    "round_nearest_afz": round_half_away_from_zero,
    "round_nearest_even": np.rint,
    "sign": sign,
    "sqrt": np.sqrt,
    "divide": np.divide,
    "maximum": maximum,
    "minimum": minimum,
    "remainder": np.fmod,
}
# Functions for which numpy may use different instructions if the operand is not row-major.
ROUNDED: dict[str, Compute] = {
    "cbrt": np.cbrt,
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": logistic,
    "rsqrt": rsqrt,
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
    "divide": divide_integers,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": power_of_integers,
    "remainder": remainder_of_integers,
    # Like StableHLO, numpy returns zero if the amount is not less than the width.
    "shift_left": np.left_shift,
}
INTEGER_WITH_WIDTH: dict[str, Compute] = {
    "count_leading_zeros": count_leading_zeros,
    "popcnt": count_ones,
    "shift_right_arithmetic": shift_right_arithmetic,
    "shift_right_logical": shift_right_logical,
}
"""Functions that also take the number of bits, as `width`."""
BY_TABLE = EXACT.keys() | FLOAT.keys() | ROUNDED.keys() | INTEGER.keys() | INTEGER_WITH_WIDTH.keys()


def compute_for(op: str, dtype: DType) -> Compute | None:
    """Return the function that computes an operation on elements of type `dtype`, or None if the operation is not
    defined for these elements.

    The function expects elements of type `working_dtype(dtype)`.
    """
    if op in EXACT:
        return EXACT[op]
    kind = kind_of(dtype)
    if kind in "iub":
        return partial(INTEGER_WITH_WIDTH[op], width=bit_width(dtype)) if op in INTEGER_WITH_WIDTH else INTEGER.get(op)
    if kind == "c":
        return COMPLEX.get(op) or ROUNDED.get(op)
    return FLOAT.get(op) or ROUNDED.get(op)


def working_dtype(dtype: DType) -> DType:
    """Return the type with which kernels compute for elements of `dtype`: complex128 for complex numbers, else
    `wide(dtype)`."""
    return np.dtype(np.complex128) if kind_of(dtype) == "c" else wide(dtype)


def from_tables(op: Operation) -> Kernel:
    return kernel_named(op.name.removeprefix("stablehlo."), op)


def kernel_named(name: str, op: Operation) -> Kernel:
    """Make the kernel for `op`, an operation of any dialect that computes the same as the StableHLO operation `name`.

    Raises:
        ValueError: The operation is not defined for the element type.
    """
    dtype, result = dtype_at(op.operands[0]), dtype_at(op.results[0])
    compute = compute_for(name, dtype)
    if compute is None:
        raise ValueError(f"{op.name} is not defined for elements of type {dtype}")
    working = wide(dtype) if name in EXACT else working_dtype(dtype)
    if not isinstance(compute, np.ufunc) or working != dtype:
        return lambda *operands: (as_owned(compute(*(row_by_row(operand, working) for operand in operands)), result),)
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
    return on_two(lambda a, b: as_owned(relation(prepared(a), prepared(b)), np.dtype(np.bool_)))


def total_order(a: Array) -> Array:
    """Map floats to integers with the same order as totalOrder of IEEE 754: -NaN < -inf < … < -0.0 < 0.0 < … < inf <
    NaN."""
    width = bit_width(a.dtype)
    bits = row_by_row(a).view(f"u{a.dtype.itemsize}").astype(np.int64)
    # The sign of types smaller than 8 bytes must be extended; the bits of an f64 are already an i64.
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
    assert lowest is not None and highest is not None, "maximum and minimum are defined for all element types"

    def run(*operands: Array) -> tuple[Array, ...]:
        low, value, high = (np.asarray(operand, wide(dtype)) for operand in operands)
        return (as_owned(highest(lowest(value, low), high), dtype),)

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
    return on_one(lambda operand: as_owned(convert(operand, dtype), dtype))
