"""The floats of xDSL's attributes and the bits of their type, one for one.

xDSL holds every float as a Python float, a double. The numbers of all narrower types are doubles; their NaNs become
doubles when the payload goes to the top of the double's, the bit that says quiet or signalling included. Hardware and
`struct` quieten NaNs on the way, and xDSL forgets payloads below sixteen bits, so NaNs pass through integers here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from typing_extensions import TypeIs
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
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
)
from xdsl.ir import Attribute

from .elements import FLOATS, round_to

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
"""The types with the NaNs of IEEE 754, of any payload but zero."""
FEW_NANS: dict[type[Attribute], tuple[int, ...]] = {
    Float8E4M3FNType: (0x7F, 0xFF),
    Float8E5M2FNUZType: (0x80,),
    Float8E4M3FNUZType: (0x80,),
    Float8E4M3B11FNUZType: (0x80,),
    Float8E8M0FNUType: (0xFF,),
}
"""All NaNs of other types, the positive one first. Types that stand in neither table have none."""

_NEGATIVE = 1 << 63
_INFINITY = 0x7FF << 52
_QUIET = 1 << 51


def bits_of(attribute: FloatAttr) -> int:
    """The bits of the number in its own type, NaN payload and sign of zero included.

    For f80 and f128, which xDSL reads from decimals only, the bits of the double that it holds.
    """
    return encode_float(attribute.value.data, attribute.type)


def encode_float(value: float, kind: AnyFloat) -> int:
    """The bits of the number, rounded to the type once, out of range to what the type has for it."""
    if value != value and has_nan(kind):
        return _narrow(double_bits(value), kind)
    if isinstance(kind, Float64Type) or is_wide(kind):
        return double_bits(value)
    if isinstance(kind, Float16Type | BFloat16Type | Float32Type):
        return int.from_bytes(pack_floats([value], kind), "little")
    return kind.encode_bits(value)


def is_wide(kind: Attribute) -> TypeIs[Float80Type | Float128Type]:
    """Whether the type has more numbers than a double. Of those only the doubles can be held."""
    return isinstance(kind, Float80Type | Float128Type)


def has_nan(kind: AnyFloat) -> bool:
    return type(kind) in PAYLOAD_BITS or type(kind) in FEW_NANS


def decode_float(bits: int, kind: AnyFloat) -> float:
    """The number with these bits, of any type but f80 and f128."""
    nan = decode_nan(bits, kind)
    return kind.unpack(bits.to_bytes(kind.compile_time_size, "little"), 1)[0] if nan is None else nan


def pack_floats(values: Sequence[float], kind: AnyFloat) -> bytes:
    """The bits of numbers of type f16, bf16 or f32, one after the other."""
    doubles = np.array(values, np.float64)
    dtype = FLOATS[type(kind)]
    nans = np.isnan(doubles)
    bits = round_to(np.where(nans, 0.0, doubles), dtype).view(f"u{dtype.itemsize}")
    for index in np.flatnonzero(nans):
        bits[index] = _narrow(int(doubles.view(np.uint64)[index]), kind)
    return bits.tobytes()


def decode_nan(bits: int, kind: AnyFloat) -> float | None:
    """The double that stands for these bits if they are a NaN; None if they are a number."""
    payload_bits = PAYLOAD_BITS.get(type(kind))
    if payload_bits is None:
        nans = FEW_NANS.get(type(kind), ())
        return _double((bits != nans[0]) * _NEGATIVE | _INFINITY | _QUIET) if bits in nans else None
    if bits & _infinity(kind) != _infinity(kind) or not (payload := bits & (1 << payload_bits) - 1):
        return None
    negative = bits >> kind.bitwidth - 1
    return _double(negative * _NEGATIVE | _INFINITY | payload << 52 - payload_bits)


def _narrow(double: int, kind: AnyFloat) -> int:
    """The NaN of the type with the sign and the top of the payload of this one; quiet if nothing else is left of it."""
    negative = bool(double & _NEGATIVE)
    payload_bits = PAYLOAD_BITS.get(type(kind))
    if payload_bits is None:
        return FEW_NANS[type(kind)][-1 if negative else 0]
    payload = (double & (1 << 52) - 1) >> 52 - payload_bits
    return negative << kind.bitwidth - 1 | _infinity(kind) | (payload or 1 << payload_bits - 1)


def _infinity(kind: AnyFloat) -> int:
    """All ones between sign and payload."""
    return (1 << kind.bitwidth - 1) - (1 << PAYLOAD_BITS[type(kind)])


def double_bits(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


def _double(bits: int) -> float:
    return struct.unpack("<d", bits.to_bytes(8, "little"))[0]
