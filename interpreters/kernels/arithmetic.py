"""Elementwise arithmetic where StableHLO and numpy differ."""

from __future__ import annotations

import numpy as np

from ...dialects.elements import DType, round_to
from .arrays import Array


def maximum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 maximum: NaN wins, and 0.0 is greater than -0.0, unlike in numpy."""
    larger = np.maximum(a, b)
    zero = _both_zero(a, b)
    return np.where(zero, a + b, larger) if zero.any() else larger


def minimum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 minimum: NaN wins, and -0.0 is less than 0.0."""
    smaller = np.minimum(a, b)
    zero = _both_zero(a, b)
    return np.where(zero, -(-a - b), smaller) if zero.any() else smaller


def _both_zero(a: Array, b: Array) -> Array:
    return np.asarray((a == 0) & (b == 0))


def sign(a: Array) -> Array:
    """-1, 1, or the operand itself where it is a zero or NaN."""
    return np.where((a == 0) | np.isnan(a), a, np.copysign(a.dtype.type(1), a))


def round_half_away_from_zero(a: Array) -> Array:
    whole = np.trunc(a)
    return whole + np.where(np.abs(a - whole) >= 0.5, np.copysign(a.dtype.type(1), a), np.copysign(a.dtype.type(0), a))


def rsqrt(a: Array) -> Array:
    return np.reciprocal(np.sqrt(a))


def logistic(a: Array) -> Array:
    return np.reciprocal(a.dtype.type(1) + np.exp(-a))


def divide_integers(a: Array, b: Array) -> Array:
    """Quotient rounded towards zero; division by zero sets all bits, as in XLA, and the lowest number wraps."""
    # Exact, since the remainder is subtracted first; the lowest number wraps.
    quotient = np.floor_divide(a - np.fmod(a, b), b)
    return np.where(b == 0, np.invert(np.zeros_like(b)), quotient)


def remainder_of_integers(a: Array, b: Array) -> Array:
    """Remainder with the sign of the dividend; by zero it is the dividend, as in XLA."""
    return np.where(b == 0, a, np.fmod(a, b))


def power_of_integers(base: Array, exponent: Array) -> Array:
    """By squaring, with wrap-around; a negative exponent gives the whole part of the fraction, 0 for a base of 0."""
    result = np.ones_like(base)
    square, left = base.copy(), np.where(exponent < 0, 0, exponent)
    while np.any(left):
        result = np.where((left & 1) == 1, result * square, result)
        square, left = square * square, left >> 1
    odd = (exponent & 1) == 1
    fraction = np.where(base == 1, 1, np.where((base < 0) & (base + 1 == 0), np.where(odd, -1, 1), 0))
    return np.where(exponent < 0, fraction.astype(base.dtype), result)


def unsigned(a: Array, width: int) -> Array:
    """The bits of integers of `width` bits, in unsigned integers that may be wider."""
    bits = a.view(f"u{a.dtype.itemsize}")
    return bits & ((1 << width) - 1) if width < 8 * a.dtype.itemsize else bits


def shift_right_logical(a: Array, amount: Array, width: int) -> Array:
    """Shift in zeros; an amount beyond the width, or a negative one, gives zero."""
    shifted = np.right_shift(unsigned(a, width), unsigned(amount, width))
    return np.asarray(shifted).view(a.dtype)


def shift_right_arithmetic(a: Array, amount: Array, width: int) -> Array:
    """The highest bit comes in from the left, whether or not it is a sign: unsigned integers are shifted like others.

    An amount beyond the width, or negative, leaves that bit alone.
    """
    above = 8 * a.dtype.itemsize - width
    signed = a.view(f"i{a.dtype.itemsize}") << above >> above
    return np.asarray(np.right_shift(signed, unsigned(amount, width).view(signed.dtype))).view(a.dtype)


def count_ones(a: Array, width: int) -> Array:
    bits = np.asarray(unsigned(a, width), order="C")
    columns = bits.reshape(*bits.shape, 1).view(np.uint8)
    return np.unpackbits(columns, axis=-1).sum(-1, dtype=a.dtype)


def count_leading_zeros(a: Array, width: int) -> Array:
    bits = np.asarray(unsigned(a, width))
    step = 1
    while step < width:
        bits = bits | (bits >> step)
        step *= 2
    return a.dtype.type(width) - count_ones(np.asarray(bits).view(a.dtype), width)


def count_trailing_zeros(a: Array, width: int) -> Array:
    bits = unsigned(a, width)
    below = np.bitwise_and(~bits, bits - bits.dtype.type(1))
    return count_ones(np.asarray(below).view(a.dtype), width)


def rounded_sum_of_product(a: Array, b: Array, c: Array, dtype: DType) -> Array:
    """`a * b + c`, rounded once to f32 or a smaller float.

    The product is exact in f64. The sum is rounded to odd there, by the error that Knuth's TwoSum finds, so that the
    second rounding is exact (Boldo and Melquiond, 2008).
    """
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = np.asarray(product + addend)
    back = total - product
    error = (product - (total - back)) + (addend - back)
    even = total.view(np.uint64) % np.uint64(2) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    off = (error != 0) & np.isfinite(total) & np.isfinite(error) & even
    return round_to(np.where(off, np.nextafter(total, towards), total), dtype)
