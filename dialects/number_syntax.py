"""Reads numbers in attributes: floats to the bit, as MLIR does, and integers of the widths that MLIR has.

`0x7FC00001 : f32` is a bit pattern, `1.0e40 : f32` infinity, and in arrays the same: `array<f32: 0x7F800000, 1.0>`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    DenseArrayBase,
    Float8E8M0FNUType,
    FloatAttr,
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

from .floats import bits_of, decode_float, encode_float, has_nan, is_wide
from .guards import is_integer_type

WIDEST_INTEGER = (1 << 24) - 1
LONGEST_WIDTH = len(str(WIDEST_INTEGER))
INDICES = range(-(1 << 63), 1 << 63)
_INTEGER_TYPE = re.compile(r"[su]?i([0-9]+)")
_HEXADECIMAL = re.compile(r"-?\s*0x")
_xdsl_reads_array = AttrParser._parse_builtin_densearray_attr  # pyright: ignore[reportPrivateUsage]


@dataclass(frozen=True)
class Number:
    """A number as it is written, before its type is known."""

    value: float | int
    hexadecimal: bool
    negative: bool

    def of_type(self, kind: Attribute) -> FloatAttr | IntegerAttr[IntegerType | IndexType]:
        """`ValueError` if no number of the type is written like this."""
        if isinstance(kind, AnyFloat):
            return self.as_float(kind)
        if isinstance(kind, IndexType) or is_integer_type(kind):
            return self.as_integer(kind)
        raise ValueError(f"{kind} is not a type of numbers")

    def as_float(self, kind: AnyFloat) -> FloatAttr:
        """`ValueError` if this is no float of the type, or xDSL would lose bits of it."""
        bits = self.bits(kind)
        attribute = FloatAttr(self.value if isinstance(self.value, float) else decode_float(bits, kind), kind)
        if bits_of(attribute) != bits:
            raise ValueError(f"xDSL does not keep the bits of this {kind}, 0x{bits:X}")
        return attribute

    def bits(self, kind: AnyFloat) -> int:
        """Of the type; of a double if the type is wider. `ValueError` if this is no float of the type."""
        if isinstance(self.value, int):
            return self._bit_pattern(self.value, kind)
        if math.isinf(self.value) and (is_wide(kind) or not has_nan(kind)):
            raise ValueError(f"numbers of type {kind} are read as f64, which this one does not fit")
        if isinstance(kind, Float8E8M0FNUType) and self.value < 0:
            raise ValueError(f"{kind} has no negative values")
        return encode_float(self.value, kind)

    def _bit_pattern(self, bits: int, kind: AnyFloat) -> int:
        if not self.hexadecimal:
            raise ValueError(f"'{bits}' is not a float: write a decimal point, or the bit pattern in hexadecimal")
        if self.negative:
            raise ValueError("a hexadecimal float is a bit pattern and has no minus")
        if bits >> kind.bitwidth:
            raise ValueError(f"'0x{bits:X}' does not fit the {kind.bitwidth} bits of {kind}")
        if is_wide(kind):
            raise ValueError(f"the bits of {kind} cannot be kept: write a decimal number")
        return bits

    def as_integer(self, kind: IntegerType | IndexType) -> IntegerAttr[IntegerType | IndexType]:
        """`ValueError` if this is no integer of the type, or it is out of range."""
        if isinstance(self.value, float):
            raise ValueError(f"a float is no number of type {kind}")
        if isinstance(kind, IndexType) and self.value not in INDICES:
            raise ValueError(f"{self.value} does not fit the 64 bits of an index")
        try:
            return IntegerAttr(self.value, kind)
        except VerifyException as error:
            raise ValueError(" ".join(str(error).split())) from error


def parse_optional_number(parser: AttrParser) -> Number | None:
    start = parser.pos
    value = parser.parse_optional_number()
    if value is None:
        return None
    text = parser.lexer.input.content
    return Number(value, _HEXADECIMAL.match(text, start) is not None, text.startswith("-", start))


def parse_dense_array(self: AttrParser) -> DenseArrayBase | None:
    """What follows the word `array`. In place of xDSL's method, which reads decimal floats only."""
    start = self.pos
    self.parse_punctuation("<", " in dense array")
    kind = self.parse_type()
    if not isinstance(kind, AnyFloat) or self.parse_optional_punctuation(":") is None:
        self._resume_from(start)  # pyright: ignore[reportPrivateUsage]
        return _xdsl_reads_array(self)
    if is_wide(kind):
        self.raise_error(f"the bits of {kind} cannot be kept in an array", start, self.pos)
    bits = self.parse_comma_separated_list(AttrParser.Delimiter.NONE, lambda: _parse_float_bits(self, kind))
    self.parse_punctuation(">", " in dense array")
    return DenseArrayBase(kind, BytesAttr(b"".join(one.to_bytes(kind.size, "little") for one in bits)))


def _parse_float_bits(parser: AttrParser, kind: AnyFloat) -> int:
    start = parser.pos
    if (number := parse_optional_number(parser)) is None:
        parser.raise_error("expected a float")
    try:
        return number.bits(kind)
    except ValueError as error:
        parser.raise_error(str(error), start, parser.pos)


class NumberParser(Parser):
    """xDSL's parser with MLIR's numbers."""

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
            return number.of_type(kind)
        except ValueError as error:
            self.raise_error(str(error), start, end)

    def _parse_builtin_densearray_attr(self) -> DenseArrayBase:
        start = self.pos
        array = parse_dense_array(self)
        assert array is not None, "xDSL says None, and never returns it"
        if array.elt_type.bitwidth % 8 and array.elt_type != i1:
            self.raise_error(f"the elements of an array have whole bytes, not {array.elt_type}", start, self.pos)
        return array

    def _parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        token = self._current_token
        width = _INTEGER_TYPE.fullmatch(token.text) if token.kind == MLIRTokenKind.BARE_IDENT else None
        if width is not None and (len(width[1]) > LONGEST_WIDTH or int(width[1]) > WIDEST_INTEGER):
            self.raise_error(f"an integer has {WIDEST_INTEGER} bits at most")
        return super()._parse_optional_integer_or_float_type()
