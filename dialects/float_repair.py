"""Repairs xDSL's floats: their NaNs, numbers out of range, and their bits in arrays. For our driver and stock tools.

xDSL 0.73 and 0.74 read `0x7F800001 : f32`, a signalling NaN, as 0x7FC00001, and every NaN of eight bits as one; refuse
`1.0e40 : f32`, which MLIR reads as infinity; print infinity in `array<f32: 0x7f800000>` but do not read it; and meet
`1.0 : f80` with a traceback. 0.73 also rounds bf16 twice and takes all NaNs for equal. What xDSL converts is repaired
where it converts, in the types, so that attributes, arrays and dense constants are right at once; what is a number is
left to xDSL. Each repair is made only where a test of it fails.
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

from .floats import decode_nan, double_bits, encode_float, has_nan, is_wide, pack_floats
from .number_syntax import parse_dense_array

SOME_NAN: dict[type[AnyFloat], int] = {
    Float32Type: 0x7F800001,
    Float16Type: 0x7C01,
    BFloat16Type: 0x7F81,
    Float8E4M3FNType: 0xFF,
}
_ROUNDED_TWICE = 1.0 + 2.0**-8 + 2.0**-30
"""By way of f32 it becomes a tie for bf16, and goes down."""
_xdsl_prints = Printer.print_float


def repair_floats() -> None:
    """Repair what is broken, once. Never raises: where xDSL differs from what we know, it is left alone and said."""
    try:
        for kind in (Float16Type(), BFloat16Type(), Float32Type()):
            if not converts_exactly(kind):
                _repair_type(type(kind))
        if not converts_exactly(Float8E4M3FNType()):
            _repair_small_types()
        if not tells_nans_apart():
            FloatData.__eq__, FloatData.__hash__ = _equal, _hash
        if not prints_wide_floats():
            Printer.print_float = _print
        if not reads_bits_in_arrays():
            AttrParser._parse_builtin_densearray_attr = parse_dense_array  # pyright: ignore[reportPrivateUsage]
    except Exception as error:
        print(f"recompute: xDSL's floats are not repaired: {error}", file=sys.stderr)


def converts_exactly(kind: AnyFloat) -> bool:
    """Whether a NaN comes back with its bits, infinity stands for what is out of range, and rounding happens once."""
    nan = SOME_NAN[type(kind)]
    (held,) = kind.unpack(nan.to_bytes(kind.size, "little"), 1)
    return all(_packed(value, kind) == encode_float(value, kind) for value in (_ROUNDED_TWICE, 1.0e300)) and (
        double_bits(held) == double_bits(decode_nan(nan, kind) or 0.0) and _packed(held, kind) == nan
    )


def _packed(value: float, kind: AnyFloat) -> int | None:
    try:
        return int.from_bytes(kind.pack((value,)), "little")
    except OverflowError:
        return None


def _repair_type(kind: Any) -> None:
    """Replace the methods of f16, bf16 or f32 that convert. What xDSL reads as a number is left as it is."""
    unpacks, iterates = kind.unpack, kind.iter_unpack

    def pack(self: AnyFloat, values: Sequence[float]) -> bytes:
        return pack_floats(values, self)

    def unpack(self: AnyFloat, buffer: bytes, num: int) -> tuple[float, ...]:
        return tuple(_with_nans(unpacks(self, buffer, num), buffer, self))

    def iter_unpack(self: AnyFloat, buffer: bytes) -> Iterator[float]:
        return _with_nans(iterates(self, buffer), buffer, self)

    kind.pack, kind.unpack, kind.iter_unpack = pack, unpack, iter_unpack


def _with_nans(values: Iterable[float], buffer: bytes, kind: AnyFloat) -> Iterator[float]:
    """The values with each NaN as it stands in the buffer."""
    for index, value in enumerate(values):
        nan = None if value == value else decode_nan(_bits_at(index, buffer, kind.size), kind)
        yield value if nan is None else nan


def _bits_at(index: int, buffer: bytes, size: int) -> int:
    return int.from_bytes(memoryview(buffer)[index * size : (index + 1) * size], "little")


def _repair_small_types() -> None:
    """The types whose bits xDSL takes apart itself: those of eight bits and fewer, and tf32."""
    xdsl_decodes, xdsl_encodes = ReducedPrecisionFloatType.decode_bits, ReducedPrecisionFloatType.encode_bits

    def decode(self: Any, bits: int) -> float:
        nan = decode_nan(bits, self)
        return xdsl_decodes(self, bits) if nan is None else nan

    def encode(self: Any, value: float) -> int:
        return xdsl_encodes(self, value) if value == value or not has_nan(self) else encode_float(value, self)

    ReducedPrecisionFloatType.decode_bits, ReducedPrecisionFloatType.encode_bits = decode, encode


def tells_nans_apart() -> bool:
    one, other = (FloatData(decode_nan(bits, f32) or 0.0) for bits in (0x7F800001, 0x7FC00001))
    same = FloatData(decode_nan(0x7F800001, f32) or 0.0)
    return one == same and hash(one) == hash(same) and one != other and FloatData(0.0) != FloatData(-0.0)


def _equal(self: FloatData, other: object) -> bool:
    return isinstance(other, FloatData) and double_bits(self.data) == double_bits(other.data)


def _hash(self: FloatData) -> int:
    return hash(double_bits(self.data))


def prints_wide_floats() -> bool:
    try:
        Printer(StringIO()).print_float(1.0, f80)
    except NotImplementedError:
        return False
    return True


def _print(self: Printer, value: float, type: AnyFloat) -> None:
    """Replaces the method of the same name: f80 and f128, which hold doubles here, are printed as such."""
    if not is_wide(type):
        return _xdsl_prints(self, value, type)
    if not math.isfinite(value):
        raise ValueError(f"the bits of {value} of type {type} are not known")
    return self.print_string(f"{value:.16e}")


def reads_bits_in_arrays() -> bool:
    context = Context()
    context.load_dialect(Builtin)
    try:
        found = Parser(context, "array<f32: 0x7F800001>").parse_attribute()
    except ParseError:
        return False
    return isinstance(found, DenseArrayBase) and found.data.data == b"\x01\x00\x80\x7f"
