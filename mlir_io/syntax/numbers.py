"""Bit-exact numbers in attributes, parsed as MLIR parses them: floats, integers of all widths, and arrays.

`0x7FC00001 : f32` is a bit pattern, and `1.0e40 : f32` is infinity. The same applies to `array<f32: 0x7F800000, 1.0>`.

xDSL stores every float as a double, which represents all numbers of the narrower types exactly. A NaN is stored as a
double with the NaN's payload, including the quiet bit, in the top bits of the double's payload. This module converts
NaNs with integer arithmetic, because hardware and `struct` set the quiet bit in conversions, and xDSL drops all but the
top sixteen payload bits.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import TypeIs
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    BytesAttr,
    DenseArrayBase,
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
    Float80Type,
    Float128Type,
    FloatAttr,
    FloatTF32Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.parser import AttrParser, Parser
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ...dialects.constants.elements import FLOATS, round_to
from ...support.type_guards import is_integer_type

PAYLOAD_BITS: dict[type[Attribute], int] = {
    Float64Type: 52,
    Float32Type: 23,
    Float16Type: 10,
    BFloat16Type: 7,
    FloatTF32Type: 10,
    Float8E5M2Type: 2,
    Float8E4M3Type: 3,
    Float8E3M4Type: 4,
}
"""The number of payload bits of the types with IEEE 754 NaNs. In these types, every non-zero payload is a NaN."""
FEW_NANS: dict[type[Attribute], tuple[int, ...]] = {
    Float8E4M3FNType: (0x7F, 0xFF),
    Float8E5M2FNUZType: (0x80,),
    Float8E4M3FNUZType: (0x80,),
    Float8E4M3B11FNUZType: (0x80,),
    Float8E8M0FNUType: (0xFF,),
}
"""All bit patterns of NaNs in the other types, with the positive one first. Types in neither table have no NaN."""

_NEGATIVE = 1 << 63
_INFINITY = 0x7FF << 52
_QUIET = 1 << 51


def bits_of(attribute: FloatAttr) -> int:
    """Return the exact bit pattern of the number in its own type.

    For f80 and f128, this is the bit pattern of the double that xDSL stores. xDSL can parse these types only from
    decimal numbers.
    """
    return encode_float(attribute.value.data, attribute.type)


def encode_float(value: float, kind: AnyFloat) -> int:
    """Return the bit pattern of the number after a single rounding to the type.

    A number out of range becomes infinity, or the type's substitute for infinity.
    """
    if value != value and has_nan(kind):
        return _narrow(double_bits(value), kind)
    if isinstance(kind, Float64Type) or is_wide(kind):
        return double_bits(value)
    if isinstance(kind, Float16Type | BFloat16Type | Float32Type):
        return int.from_bytes(pack_floats([value], kind), "little")
    return kind.encode_bits(value)


def is_wide(kind: Attribute) -> TypeIs[Float80Type | Float128Type]:
    """Return whether xDSL cannot store all numbers of the type, because a double cannot represent them."""
    return isinstance(kind, Float80Type | Float128Type)


def has_nan(kind: AnyFloat) -> bool:
    return type(kind) in PAYLOAD_BITS or type(kind) in FEW_NANS


def decode_float(bits: int, kind: AnyFloat) -> float:
    """Return the number with this bit pattern, for any type except f80 and f128."""
    nan = decode_nan(bits, kind)
    return kind.unpack(bits.to_bytes(kind.compile_time_size, "little"), 1)[0] if nan is None else nan


def pack_floats(values: Sequence[float], kind: AnyFloat) -> bytes:
    """Return the concatenated little-endian bit patterns of f16, bf16 or f32 numbers."""
    doubles = np.array(values, np.float64)
    dtype = FLOATS[type(kind)]
    nans = np.isnan(doubles)
    bits = round_to(np.where(nans, 0.0, doubles), dtype).view(f"u{dtype.itemsize}")
    for index in np.flatnonzero(nans):
        bits[index] = _narrow(int(doubles.view(np.uint64)[index]), kind)
    return bits.tobytes()


def decode_nan(bits: int, kind: AnyFloat) -> float | None:
    """Return the double that represents the NaN with this bit pattern; None if the pattern is not a NaN."""
    payload_bits = PAYLOAD_BITS.get(type(kind))
    if payload_bits is None:
        nans = FEW_NANS.get(type(kind), ())
        return _double((bits != nans[0]) * _NEGATIVE | _INFINITY | _QUIET) if bits in nans else None
    if bits & _infinity(kind) != _infinity(kind) or not (payload := bits & (1 << payload_bits) - 1):
        return None
    negative = bits >> kind.bitwidth - 1
    return _double(negative * _NEGATIVE | _INFINITY | payload << 52 - payload_bits)


def _narrow(double: int, kind: AnyFloat) -> int:
    """Return the bits of a NaN of the narrower type, with the sign and the top payload bits of a double NaN.

    If these payload bits are all zero, the quiet bit is set, because the result would otherwise be an infinity.
    """
    negative = bool(double & _NEGATIVE)
    payload_bits = PAYLOAD_BITS.get(type(kind))
    if payload_bits is None:
        return FEW_NANS[type(kind)][-1 if negative else 0]
    payload = (double & (1 << 52) - 1) >> 52 - payload_bits
    return negative << kind.bitwidth - 1 | _infinity(kind) | (payload or 1 << payload_bits - 1)


def _infinity(kind: AnyFloat) -> int:
    """Return the bit pattern of infinity, in which all exponent bits are set."""
    return (1 << kind.bitwidth - 1) - (1 << PAYLOAD_BITS[type(kind)])


def double_bits(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


def _double(bits: int) -> float:
    return struct.unpack("<d", bits.to_bytes(8, "little"))[0]


MAX_INTEGER_WIDTH = (1 << 24) - 1
"""Maximum width of an integer type in MLIR, in bits."""
MAX_WIDTH_DIGITS = len(str(MAX_INTEGER_WIDTH))
"""Number of digits above which a width is too large. Python refuses to convert much longer texts to integers."""
INDICES = range(-(1 << 63), 1 << 63)
_INTEGER_TYPE = re.compile(r"[su]?i([0-9]+)")
_HEXADECIMAL = re.compile(r"-?\s*0x")
_xdsl_reads_array = AttrParser._parse_builtin_densearray_attr  # pyright: ignore[reportPrivateUsage]


@dataclass(frozen=True)
class NumberLiteral:
    """A number literal whose type is not yet known.

    Attributes:
        value: The number, or the bit pattern if the literal is hexadecimal.
        hexadecimal: Whether the literal is written in hexadecimal.
        negative: Whether the literal has a minus sign.
    """

    value: float | int
    hexadecimal: bool
    negative: bool

    def as_type(self, kind: Attribute) -> FloatAttr | IntegerAttr[IntegerType | IndexType]:
        """Convert the literal to an attribute of the type.

        Raises:
            ValueError: The literal is not a number of the type.
        """
        if isinstance(kind, AnyFloat):
            return self.as_float(kind)
        if isinstance(kind, IndexType) or is_integer_type(kind):
            return self.as_integer(kind)
        raise ValueError(f"{kind} is not a numeric type")

    def as_float(self, kind: AnyFloat) -> FloatAttr:
        """Convert the literal to a float attribute.

        Raises:
            ValueError: The literal is not a float of the type, or xDSL cannot represent its bits.
        """
        bits = self.bits(kind)
        attribute = FloatAttr(self.value if isinstance(self.value, float) else decode_float(bits, kind), kind)
        if bits_of(attribute) != bits:
            raise ValueError(f"the bit pattern 0x{bits:X} of {kind} is not supported, because xDSL would change it")
        return attribute

    def bits(self, kind: AnyFloat) -> int:
        """Return the bit pattern of the literal in the type, or in a double for f80 and f128.

        Raises:
            ValueError: The literal is not a float of the type.
        """
        if isinstance(self.value, int):
            return self._bit_pattern(self.value, kind)
        if math.isinf(self.value) and (is_wide(kind) or not has_nan(kind)):
            raise ValueError(f"the number is out of range: numbers of type {kind} are parsed as f64")
        if isinstance(kind, Float8E8M0FNUType) and self.value < 0:
            raise ValueError(f"{kind} has no negative values")
        return encode_float(self.value, kind)

    def _bit_pattern(self, bits: int, kind: AnyFloat) -> int:
        if not self.hexadecimal:
            raise ValueError(f"'{bits}' is not a float: add a decimal point, or write the bit pattern in hexadecimal")
        if self.negative:
            raise ValueError("a hexadecimal float is a bit pattern and must not have a minus sign")
        if bits >> kind.bitwidth:
            raise ValueError(f"'0x{bits:X}' does not fit in the {kind.bitwidth} bits of {kind}")
        if is_wide(kind):
            raise ValueError(
                f"a hexadecimal number of type {kind} is not supported, because xDSL would lose some of its bits: "
                "write a decimal number"
            )
        return bits

    def as_integer(self, kind: IntegerType | IndexType) -> IntegerAttr[IntegerType | IndexType]:
        """Convert the literal to an integer attribute.

        Raises:
            ValueError: The literal is not an integer, or is out of range.
        """
        if isinstance(self.value, float):
            raise ValueError(f"a number of type {kind} must be an integer, not a float")
        if isinstance(kind, IndexType) and self.value not in INDICES:
            raise ValueError(f"{self.value} does not fit in the 64 bits of an index")
        try:
            return IntegerAttr(self.value, kind)
        except VerifyException as error:
            raise ValueError(" ".join(str(error).split())) from error


def parse_optional_number(parser: AttrParser) -> NumberLiteral | None:
    start = parser.pos
    value = parser.parse_optional_number()
    if value is None:
        return None
    text = parser.lexer.input.content
    return NumberLiteral(value, _HEXADECIMAL.match(text, start) is not None, text.startswith("-", start))


def parse_dense_array(self: AttrParser) -> DenseArrayBase | None:
    """Parse an array attribute after the keyword `array`. This function replaces xDSL's method, which accepts only
    decimal floats."""
    start = self.pos
    self.parse_punctuation("<", " in dense array")
    kind = self.parse_type()
    if not isinstance(kind, AnyFloat) or self.parse_optional_punctuation(":") is None:
        self._resume_from(start)  # pyright: ignore[reportPrivateUsage]
        return _xdsl_reads_array(self)
    if is_wide(kind):
        self.raise_error(f"an array cannot represent the bits of {kind}", start, self.pos)
    bits = self.parse_comma_separated_list(AttrParser.Delimiter.NONE, lambda: _parse_float_bits(self, kind))
    self.parse_punctuation(">", " in dense array")
    return DenseArrayBase(kind, BytesAttr(b"".join(bit.to_bytes(kind.size, "little") for bit in bits)))


def _parse_float_bits(parser: AttrParser, kind: AnyFloat) -> int:
    start = parser.pos
    if (number := parse_optional_number(parser)) is None:
        parser.raise_error("expected a float")
    try:
        return number.bits(kind)
    except ValueError as error:
        parser.raise_error(str(error), start, parser.pos)


class NumberParser(Parser):
    """xDSL's parser with the number syntax of MLIR."""

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr[IntegerType | IndexType] | FloatAttr | None:
        if (boolean := self.try_parse_builtin_boolean_attr()) is not None:
            return boolean
        start = self.pos
        if (number := parse_optional_number(self)) is None:
            return None
        end = self.pos
        kind: Attribute = f64 if isinstance(number.value, float) else i64
        if self._current_token.kind == MLIRTokenKind.COLON:
            kind = self._parse_attribute_type()
        try:
            return number.as_type(kind)
        except ValueError as error:
            self.raise_error(str(error), start, end)

    def _parse_builtin_densearray_attr(self) -> DenseArrayBase:
        start = self.pos
        array = parse_dense_array(self)
        assert array is not None, "xDSL never returns None here"
        if array.elt_type.bitwidth % 8 and array.elt_type != i1:
            self.raise_error(
                f"an array has elements of type {array.elt_type}, expected a type of whole bytes", start, self.pos
            )
        return array

    def _parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        token = self._current_token
        width = _INTEGER_TYPE.fullmatch(token.text) if token.kind == MLIRTokenKind.BARE_IDENT else None
        if width is not None and (len(width[1]) > MAX_WIDTH_DIGITS or int(width[1]) > MAX_INTEGER_WIDTH):
            self.raise_error(f"an integer type must have at most {MAX_INTEGER_WIDTH} bits")
        return super()._parse_optional_integer_or_float_type()
