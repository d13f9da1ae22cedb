"""Signless integers: the operation determines the interpretation of the bits, and wraps its results.

A true i1 is -1 as a signed integer. Undefined behavior of MLIR is refused (division by zero) or follows two's
complement.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import Operation

from ...dialects.elements import DType, bit_width
from .arithmetic import unsigned
from .arrays import Array, Compute, Kernel, dtype_at, owned


def read_signed(values: Array) -> Array:
    if values.dtype == np.bool_:
        return -values.astype(np.int8)
    return values.astype(np.int8) if bit_width(values.dtype) < 8 else values


def read_unsigned(values: Array) -> Array:
    signed = read_signed(values)
    return unsigned(signed, bit_width(values.dtype))


def wrapped(values: Array, dtype: DType) -> Array:
    """The low bits of wider integers."""
    if dtype == np.bool_:
        return owned(np.asarray(values) & 1 != 0, dtype)
    return owned(np.asarray(values), dtype)


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
"""Indexed by the predicate of `arith.cmpi`."""


def integer(op: Operation) -> Kernel:
    name, dtype = op.name.partition(".")[2], dtype_at(op.results[0])
    read, compute = (read_signed, SIGNED[name]) if name in SIGNED else (read_unsigned, UNSIGNED[name])

    def run(a: Array, b: Array) -> tuple[Array, ...]:
        if name in DIVISIONS and np.any(b == 0):
            raise ValueError("it divides by zero, which is undefined")
        return (wrapped(compute(read(a), read(b)), dtype),)

    return run


def extended(op: Operation) -> Kernel:
    """The low and the high half of a sum or product, computed in integers of any size."""
    width, (low, high) = bit_width(dtype_at(op.operands[0])), (dtype_at(result) for result in op.results)
    read = read_signed if op.name == "arith.mulsi_extended" else read_unsigned
    compute = np.add if op.name == "arith.addui_extended" else np.multiply

    def half(values: Array, dtype: DType) -> Array:
        bits = np.asarray(values & ((1 << width) - 1), dtype=object).astype(np.uint64)
        return wrapped(bits.astype(np.int64), dtype)

    def run(a: Array, b: Array) -> tuple[Array, ...]:
        exact = np.asarray(compute(read(a).astype(object), read(b).astype(object)), dtype=object)
        return half(exact, low), half(np.asarray(exact >> width, dtype=object), high)

    return run
