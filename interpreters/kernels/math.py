"""Kernels of the math dialect, on tensors and on scalars."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from xdsl.ir import Operation

from ...dialects.elements import bit_width
from . import arithmetic
from .arrays import Array, Compute, Kernel, dtype_at, on_one, on_two, owned, row_by_row, wide
from .elementwise import named
from .signless import read_signed, wrapped

# Their names in StableHLO.
AS_STABLEHLO = {
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
# These also take the number of bits, by the name `width`.
BITS: dict[str, Compute] = {
    "math.ctlz": arithmetic.count_leading_zeros,
    "math.ctpop": arithmetic.count_ones,
    "math.cttz": arithmetic.count_trailing_zeros,
}


def as_stablehlo(op: Operation) -> Kernel:
    return named(AS_STABLEHLO[op.name], op)


def of_floats(op: Operation) -> Kernel:
    """Computed in f32 for smaller floats, and rounded once."""
    compute, dtype = FLOATS[op.name], dtype_at(op.results[0])
    return lambda *operands: (owned(compute(*(row_by_row(operand, wide(dtype)) for operand in operands)), dtype),)


def of_bits(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])
    count = partial(BITS[op.name], width=bit_width(dtype))
    return on_one(lambda a: wrapped(count(row_by_row(read_signed(a))), dtype))


def absolute(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])
    return on_one(lambda a: wrapped(np.abs(read_signed(a)), dtype))


def integer_power(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])
    return on_two(lambda a, b: wrapped(arithmetic.power_of_integers(read_signed(a), read_signed(b)), dtype))


def float_to_integer_power(op: Operation) -> Kernel:
    dtype = dtype_at(op.results[0])

    def run(base: Array, exponent: Array) -> tuple[Array, ...]:
        bases = row_by_row(base, wide(dtype))
        return (owned(np.power(bases, row_by_row(exponent).astype(bases.dtype)), dtype),)

    return run


def fused_multiply_add(op: Operation) -> Kernel:
    """Rounded once. In f64 it would need more digits than numpy has."""
    dtype = dtype_at(op.results[0])
    if dtype.itemsize > 4:
        raise ValueError("a fused multiply-add of f64 needs more digits than numpy has")

    def run(a: Array, b: Array, c: Array) -> tuple[Array, ...]:
        return (owned(arithmetic.rounded_sum_of_product(a, b, c, dtype), dtype),)

    return run
