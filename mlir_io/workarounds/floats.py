"""A workaround for floats: exact conversions, equality of NaNs by their bits, and the printing of wide floats.

xDSL parses `0x7F800001 : f32`, a signalling NaN, as 0x7FC00001, and parses all 8-bit NaNs as the same NaN. It rejects
`1.0e40 : f32`, which MLIR parses as infinity. It prints infinity as `array<f32: 0x7f800000>`, but cannot parse this
text. For `1.0 : f80` it raises an internal error. Version 0.73 also rounds bf16 twice, and treats all NaNs as equal.
The workaround replaces the conversions in the float types, which corrects attributes, arrays and dense constants
together.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Builtin,
    DenseArrayBase,
    Float8E4M3FNType,
    Float16Type,
    Float32Type,
    FloatData,
    ReducedPrecisionFloatType,
    f32,
    f80,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from ..syntax.numbers import decode_nan, double_bits, encode_float, has_nan, is_wide, pack_floats, parse_dense_array

SOME_NAN: dict[type[AnyFloat], int] = {
    Float32Type: 0x7F800001,
    Float16Type: 0x7C01,
    BFloat16Type: 0x7F81,
    Float8E4M3FNType: 0xFF,
}
"""For each type, the bits of a NaN with which `converts_exactly` tests the conversions."""
_ROUNDED_TWICE = 1.0 + 2.0**-8 + 2.0**-30
"""A number whose conversion to bf16 must round up. If it is first rounded to f32, it becomes a tie, and the tie rounds
down.
"""
_xdsl_print_float = Printer.print_float


def repair_floats() -> None:
    """Apply the workarounds for floats.

    This function never raises. If xDSL's internals are not as expected, it prints a warning to standard error.
    """
    try:
        for kind in (Float16Type(), BFloat16Type(), Float32Type()):
            if not converts_exactly(kind):
                _repair_type(type(kind))
        if not converts_exactly(Float8E4M3FNType()):
            _repair_small_types()
        if not tells_nans_apart():
            FloatData.__eq__, FloatData.__hash__ = _equal_bits, _hash_bits
        if not prints_wide_floats():
            Printer.print_float = _print_wide_float
        if not reads_bits_in_arrays():
            AttrParser._parse_builtin_densearray_attr = parse_dense_array  # pyright: ignore[reportPrivateUsage]
    except Exception as error:
        print(f"recompute: workaround for xDSL's floats not applied: {error}", file=sys.stderr)


def converts_exactly(kind: AnyFloat) -> bool:
    """Return whether conversions preserve NaNs, return infinity for numbers out of range, and round only once."""
    nan = SOME_NAN[type(kind)]
    (unpacked,) = kind.unpack(nan.to_bytes(kind.size, "little"), 1)
    return all(_pack(value, kind) == encode_float(value, kind) for value in (_ROUNDED_TWICE, 1.0e300)) and (
        double_bits(unpacked) == double_bits(decode_nan(nan, kind) or 0.0) and _pack(unpacked, kind) == nan
    )


def _pack(value: float, kind: AnyFloat) -> int | None:
    try:
        return int.from_bytes(kind.pack((value,)), "little")
    except OverflowError:
        return None


def _repair_type(kind: Any) -> None:
    """Replace the conversion methods of f16, bf16 or f32. Numbers other than NaNs are still unpacked by xDSL."""
    unpacks, iterates = kind.unpack, kind.iter_unpack

    def pack(self: AnyFloat, values: Sequence[float]) -> bytes:
        return pack_floats(values, self)

    def unpack(self: AnyFloat, buffer: bytes, num: int) -> tuple[float, ...]:
        return tuple(_with_nans(unpacks(self, buffer, num), buffer, self))

    def iter_unpack(self: AnyFloat, buffer: bytes) -> Iterator[float]:
        return _with_nans(iterates(self, buffer), buffer, self)

    kind.pack, kind.unpack, kind.iter_unpack = pack, unpack, iter_unpack


def _with_nans(values: Iterable[float], buffer: bytes, kind: AnyFloat) -> Iterator[float]:
    """Yield the values, replacing each NaN with the NaN decoded from the buffer."""
    for index, value in enumerate(values):
        nan = None if value == value else decode_nan(_bits_at(index, buffer, kind.size), kind)
        yield value if nan is None else nan


def _bits_at(index: int, buffer: bytes, size: int) -> int:
    return int.from_bytes(memoryview(buffer)[index * size : (index + 1) * size], "little")


def _repair_small_types() -> None:
    """Replace the conversions of the types that xDSL converts bit by bit: types with at most eight bits, and tf32."""
    xdsl_decodes, xdsl_encodes = ReducedPrecisionFloatType.decode_bits, ReducedPrecisionFloatType.encode_bits

    def decode(self: Any, bits: int) -> float:
        nan = decode_nan(bits, self)
        return xdsl_decodes(self, bits) if nan is None else nan

    def encode(self: Any, value: float) -> int:
        return xdsl_encodes(self, value) if value == value or not has_nan(self) else encode_float(value, self)

    ReducedPrecisionFloatType.decode_bits, ReducedPrecisionFloatType.encode_bits = decode, encode


def tells_nans_apart() -> bool:
    first, other = (FloatData(decode_nan(bits, f32) or 0.0) for bits in (0x7F800001, 0x7FC00001))
    same = FloatData(decode_nan(0x7F800001, f32) or 0.0)
    return first == same and hash(first) == hash(same) and first != other and FloatData(0.0) != FloatData(-0.0)


def _equal_bits(self: FloatData, other: object) -> bool:
    return isinstance(other, FloatData) and double_bits(self.data) == double_bits(other.data)


def _hash_bits(self: FloatData) -> int:
    return hash(double_bits(self.data))


def prints_wide_floats() -> bool:
    try:
        Printer(StringIO()).print_float(1.0, f80)
    except NotImplementedError:
        return False
    return True


def _print_wide_float(self: Printer, value: float, type: AnyFloat) -> None:
    """Print numbers of type f80 and f128 as doubles, because they are stored as doubles. This replaces
    `Printer.print_float`."""
    if not is_wide(type):
        return _xdsl_print_float(self, value, type)
    if not math.isfinite(value):
        raise ValueError(
            f"cannot print {value} as {type}, because its bit pattern is unknown: use a hexadecimal constant"
        )
    return self.print_string(f"{value:.16e}")


def reads_bits_in_arrays() -> bool:
    context = Context()
    context.load_dialect(Builtin)
    try:
        parsed = Parser(context, "array<f32: 0x7F800001>").parse_attribute()
    except ParseError:
        return False
    return isinstance(parsed, DenseArrayBase) and parsed.data.data == b"\x01\x00\x80\x7f"
