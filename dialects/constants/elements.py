"""Bit-exact conversion between the text of a scalar, as MLIR spells it, and its bits.

Bits have the format of numpy (with `ml_dtypes`) and of MLIR's raw buffers: little-endian, with narrower types
zero-extended to one byte. A decimal float is parsed as a double and then rounded once, to nearest even, as in MLIR.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float4E2M1FNType,
    Float6E2M3FNType,
    Float6E3M2FNType,
    Float8E3M4Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E4M3Type,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
)
from xdsl.ir import Attribute

from ...support.type_guards import is_complex_type, is_integer_type, is_unsigned

DType: TypeAlias = "np.dtype[Any]"
Element: TypeAlias = "str | tuple[str, str]"
"""The text of a scalar; a pair for a complex number."""

FLOATS: dict[type[Attribute], DType] = {
    Float64Type: np.dtype(np.float64),
    Float32Type: np.dtype(np.float32),
    Float16Type: np.dtype(np.float16),
    BFloat16Type: np.dtype(ml_dtypes.bfloat16),
    Float8E5M2Type: np.dtype(ml_dtypes.float8_e5m2),
    Float8E4M3Type: np.dtype(ml_dtypes.float8_e4m3),
    Float8E4M3FNType: np.dtype(ml_dtypes.float8_e4m3fn),
    Float8E5M2FNUZType: np.dtype(ml_dtypes.float8_e5m2fnuz),
    Float8E4M3FNUZType: np.dtype(ml_dtypes.float8_e4m3fnuz),
    Float8E4M3B11FNUZType: np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    Float8E3M4Type: np.dtype(ml_dtypes.float8_e3m4),
    Float8E8M0FNUType: np.dtype(ml_dtypes.float8_e8m0fnu),
    Float6E2M3FNType: np.dtype(ml_dtypes.float6_e2m3fn),
    Float6E3M2FNType: np.dtype(ml_dtypes.float6_e3m2fn),
    Float4E2M1FNType: np.dtype(ml_dtypes.float4_e2m1fn),
}
COMPLEX: dict[type[Attribute], DType] = {Float64Type: np.dtype(np.complex128), Float32Type: np.dtype(np.complex64)}
SUB_BYTE_BITS: dict[DType, int] = {
    FLOATS[Float6E2M3FNType]: 6,
    FLOATS[Float6E3M2FNType]: 6,
    FLOATS[Float4E2M1FNType]: 4,
    np.dtype(ml_dtypes.int4): 4,
    np.dtype(ml_dtypes.uint4): 4,
    np.dtype(ml_dtypes.int2): 2,
    np.dtype(ml_dtypes.uint2): 2,
    np.dtype(np.bool_): 1,
}
INTEGERS: dict[int, tuple[DType, DType]] = {
    2: (np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.uint2)),
    4: (np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)),
    8: (np.dtype(np.int8), np.dtype(np.uint8)),
    16: (np.dtype(np.int16), np.dtype(np.uint16)),
    32: (np.dtype(np.int32), np.dtype(np.uint32)),
    64: (np.dtype(np.int64), np.dtype(np.uint64)),
}
"""The signed and the unsigned numpy type of each width. Signless integers have the signed type."""
SCALARS: dict[type[Attribute], DType] = {**FLOATS, IndexType: INTEGERS[64][0]}


def dtype_of(element_type: Attribute) -> DType:
    """Return the numpy type of one element.

    Raises `ValueError` for a type that neither numpy nor `ml_dtypes` supports, such as f80, i128 or a quantized type.
    """
    if is_integer_type(element_type):
        dtype = _integer_dtype(element_type.width.data, is_unsigned(element_type))
    elif is_complex_type(element_type):
        dtype = COMPLEX.get(type(element_type.element_type))
    else:
        dtype = SCALARS.get(type(element_type))
    if dtype is None:
        raise ValueError(f"numpy has no type for elements of type {element_type}")
    return dtype


def _integer_dtype(width: int, unsigned: bool) -> DType | None:
    if width == 1:
        return np.dtype(np.bool_)
    pair = INTEGERS.get(width)
    return pair and pair[unsigned]


def bit_width(dtype: DType) -> int:
    """Return the number of significant bits of an element. Types narrower than a byte leave bits of the byte unused."""
    return SUB_BYTE_BITS.get(dtype, 8 * dtype.itemsize)


def encode(elements: Sequence[Element], element_type: Attribute) -> bytes:
    """Return the concatenated bits of the elements. Raises `ValueError` if an element is not a value of the type."""
    if is_complex_type(element_type):
        parts = [part for element in elements for part in _pair(element)]
        return encode(parts, element_type.element_type)
    scalars = [_scalar(element) for element in elements]
    dtype = dtype_of(element_type)
    if type(element_type) in FLOATS:
        return encode_floats(scalars, dtype).tobytes()
    width = bit_width(dtype)
    bits = [_integer_bits(text, width, is_unsigned(element_type)) for text in scalars]
    return np.array(bits, f"u{dtype.itemsize}").tobytes()


def _pair(element: Element) -> tuple[str, str]:
    if isinstance(element, str):
        raise ValueError(f"'{element}' is not a complex number, expected '(real,imaginary)'")
    return element


def _scalar(element: Element) -> str:
    if isinstance(element, str):
        return element
    raise ValueError("the number is complex, but the element type is real")


# As in MLIR's lexer: ASCII digits, and no plus sign, underscore or capital X.
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_INTEGER = re.compile(r"-?(?:[0-9]+|0x[0-9a-fA-F]+)")


def is_hexadecimal(text: str) -> bool:
    return _HEXADECIMAL.fullmatch(text) is not None


def encode_floats(texts: Sequence[str], dtype: DType) -> NDArray[Any]:
    """Return the bits of floats as unsigned integers. A hexadecimal number is the bit pattern itself, including the
    payload of a NaN."""
    values = np.array([0.5 if is_hexadecimal(text) else _decimal(text) for text in texts], np.float64)
    if dtype in SUB_BYTE_BITS and np.any(np.isinf(values)):
        raise ValueError("the number overflows f64, in which literals are parsed, and the element type has no infinity")
    if dtype == FLOATS[Float8E8M0FNUType]:
        if np.any(values < 0):
            raise ValueError("f8E8M0FNU has no negative values")
        # The type has no zero either: zero becomes its smallest number, as in MLIR. `ml_dtypes` rounds numbers below
        # the normal range of f32 incorrectly.
        smallest = np.where(values < 1.5 * 2.0**-127, 2.0**-127, 2.0**-126)
        values = np.where(values < 2.0**-126, smallest, values)
    bits = round_to(values, dtype).view(f"u{dtype.itemsize}")
    for index, text in enumerate(texts):
        if is_hexadecimal(text):
            bits[index] = _bit_pattern(text, bit_width(dtype))
    return bits


def _decimal(text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"'{text}' is not a float: add a decimal point, or write the bit pattern in hexadecimal")
    return float(text)


def _bit_pattern(text: str, width: int) -> int:
    bits = int(text, 16)
    if bits >> width:
        raise ValueError(f"'{text}' does not fit in the {width} bits of the element type")
    return bits


def round_to(values: NDArray[np.float64], dtype: DType) -> NDArray[Any]:
    """Round doubles to `dtype`, once, to nearest even. Numbers out of range become infinity, or the type's substitute
    for infinity.

    A conversion to a type of `ml_dtypes` goes through f32 and would round twice. Therefore, this function rounds to f32
    with round-to-odd, which makes the second rounding correct (Boldo and Melquiond, "Emulation of FMA and correctly
    rounded sums", 2008). The method requires that f32 has at least two more bits than the type.
    """
    with np.errstate(over="ignore", under="ignore"):
        if dtype.kind == "f" and dtype.itemsize > 1 and dtype != FLOATS[BFloat16Type]:
            return values.astype(dtype)
        nearest = values.astype(np.float32)
        inexact_even = (nearest.astype(np.float64) != values) & (nearest.view(np.uint32) % 2 == 0)
        towards = np.where(values > nearest, np.float32(np.inf), np.float32(-np.inf))
        return np.where(inexact_even, np.nextafter(nearest, towards), nearest).astype(dtype)


def _integer_bits(text: str, width: int, unsigned: bool) -> int:
    if text in ("true", "false"):
        if width != 1:
            raise ValueError(f"'{text}' is valid only for i1")
        return int(text == "true")
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"'{text}' is not an integer")
    value = int(text, 16 if "x" in text else 10)
    lowest = 0 if unsigned else -(1 << width - 1)
    if not lowest <= value < 1 << width:
        raise ValueError(f"'{text}' does not fit in an {'unsigned ' if unsigned else ''}integer of {width} bits")
    return value & (1 << width) - 1


def formatter(element_type: Attribute) -> Callable[[bytes], str]:
    """Return a function that converts the bits of one element to text. MLIR parses this text to the same bits."""
    if is_complex_type(element_type):
        part = formatter(element_type.element_type)
        return lambda raw: f"({part(raw[: len(raw) // 2])},{part(raw[len(raw) // 2 :])})"
    dtype = dtype_of(element_type)
    if type(element_type) in FLOATS:
        return lambda raw: format_float(raw, dtype)
    if dtype == np.bool_:
        return lambda raw: "true" if raw[0] else "false"
    return lambda raw: str(int(np.frombuffer(raw, dtype)[0]))


def format_float(raw: bytes, dtype: DType) -> str:
    """Format a float as the shortest decimal of 7, 9 or 17 digits that parses to the same bits, or as hexadecimal if no
    such decimal exists."""
    value = float(np.frombuffer(raw, dtype)[0])
    if np.isfinite(value):
        for digits in (6, 8, 16):
            text = f"{value:.{digits}e}"
            if encode_floats([text], dtype).tobytes() == raw:
                return text
    return f"0x{int.from_bytes(raw, 'little'):0{bit_width(dtype) // 4}X}"
