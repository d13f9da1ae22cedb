"""Numbers in attributes are read with the exact bits that MLIR gives them, and compared by their bits."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import cast

import pytest
from xdsl.dialects.builtin import ArrayAttr, BFloat16Type, DenseArrayBase, Float16Type, FloatAttr, bf16, f16, f32, f64
from xdsl.ir import Attribute
from xdsl.utils.exceptions import ParseError

from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.mlir_io.syntax.numbers import PAYLOAD_BITS, bits_of, decode_float
from recompute.test.mlir_judge import Judge

BITS = {
    "f64": 64,
    "f32": 32,
    "tf32": 19,
    "f16": 16,
    "bf16": 16,
    "f8E5M2": 8,
    "f8E4M3": 8,
    "f8E4M3FN": 8,
    "f8E5M2FNUZ": 8,
    "f8E4M3FNUZ": 8,
    "f8E4M3B11FNUZ": 8,
    "f8E3M4": 8,
    "f8E8M0FNU": 8,
    "f6E2M3FN": 6,
    "f6E3M2FN": 6,
    "f4E2M1FN": 4,
}
NARROW = [name for name, bits in BITS.items() if bits <= 8]
WIDE = [name for name, bits in BITS.items() if bits > 8]
DECIMALS = """
    0.0 -0.0 1. 1.E3 -2.5e-3 1.0e40 -1.0e40 65519.0 65520.0 65536.0 1.0e400 -1.0e400 1.0e-400 0.1 0.3 3.0 448.0 464.0
    480.0 57344.0 61440.0 1.00390625 1.0039062509313226 1.00048828125 1.000488281250000000000000001 5.9604e-8 2.98e-8
    2.9802322387695312e-8 2.98023223876953126e-8 1.4e-45 7.0e-46 16777217.0 16777219.0 0.0625 0.09375 1.1754943e-38
""".split()


def with_attribute(text: str) -> str:
    return f"module attributes {{mhlo.a = {text}}} {{\n}}"


def attribute(text: str) -> Attribute:
    """Return the attribute, and check that its printed form is read again as itself."""
    module = parse_module(with_attribute(text))
    result = module.attributes["mhlo.a"]
    printed = print_module(module)
    again = parse_module(printed)
    assert again.attributes["mhlo.a"] == result
    assert print_module(again) == printed
    return result


def bits(text: str) -> list[int]:
    """Return the bits of an array of floats."""
    result = attribute(text)
    assert isinstance(result, ArrayAttr)
    return [bits_of(item) for item in cast("ArrayAttr[FloatAttr]", result)]


def some_bits(name: str) -> list[int]:
    """Return all bit patterns of a narrow type, or NaNs, infinities, zeros, subnormals and random patterns of a wide
    type."""
    width, dice = BITS[name], random.Random(name)
    if width <= 8:
        return list(range(1 << width))
    payload = next(bits for kind, bits in PAYLOAD_BITS.items() if kind.name == name)
    infinity = (1 << width - 1) - (1 << payload)
    nans = [infinity | 1 << bit | sign << width - 1 for bit in range(payload) for sign in (0, 1)]
    ends = [0, 1, 2, 1 << width - 1, infinity, infinity - 1, infinity | 1 << width - 1, (1 << width) - 1]
    return [
        *nans,
        *ends,
        *(infinity | dice.getrandbits(payload) for _ in range(50)),
        *map(dice.getrandbits, [width] * 99),
    ]


def as_hexadecimals(name: str, patterns: Sequence[int]) -> str:
    return f"[{', '.join(f'0x{pattern:X} : {name}' for pattern in patterns)}]"


@pytest.mark.parametrize("name", BITS)
def test_every_bit_pattern_is_kept_and_matches_mlir(name: str, judge: Judge):
    patterns = some_bits(name)
    text = as_hexadecimals(name, patterns)
    assert bits(text) == patterns
    module = parse_module(with_attribute(text))
    assert judge.print(print_module(module)) == judge.print(with_attribute(text))


@pytest.mark.parametrize("kind", [f16, bf16])
def test_all_patterns_of_sixteen_bits(kind: Float16Type | BFloat16Type):
    raw = b"".join(pattern.to_bytes(2, "little") for pattern in range(1 << 16))
    held = kind.unpack(raw, 1 << 16)
    assert kind.pack(held) == raw and tuple(map(str, kind.iter_unpack(raw))) == tuple(map(str, held))
    nans = [pattern for pattern, value in enumerate(held) if value != value]
    assert bits(as_hexadecimals(kind.name, nans)) == nans


@pytest.mark.parametrize("name", [name for name in BITS if name != "tf32"])
def test_arrays_hold_bits(name: str, judge: Judge):
    if BITS[name] % 8:
        with pytest.raises(ParseError, match="expected a type of whole bytes"):
            attribute(f"array<{name}: 0x1>")
        return
    patterns = some_bits(name)
    text = f"array<{name}: {', '.join(map(hex, patterns))}>"
    result = attribute(text)
    assert isinstance(result, DenseArrayBase)
    size = BITS[name] // 8
    assert result.data.data == b"".join(pattern.to_bytes(size, "little") for pattern in patterns)
    printed = print_module(parse_module(with_attribute(text)))
    assert judge.print(printed) == judge.print(with_attribute(text))


@pytest.mark.parametrize("name", [*BITS, "f80", "f128"])
def test_decimals_are_rounded_as_in_mlir(name: str, judge: Judge):
    unsigned, no_infinity = name == "f8E8M0FNU", name in ("f80", "f128") or BITS[name] < 8
    decimals = [
        decimal
        for decimal in DECIMALS
        if not (unsigned and decimal[0] == "-") and not (no_infinity and "e400" in decimal)
    ]
    text = with_attribute(f"[{', '.join(f'{decimal} : {name}' for decimal in decimals)}]")
    assert judge.print(print_module(parse_module(text))) == judge.print(text)
    if name not in ("tf32", "f80", "f128"):
        dense = with_attribute(f"dense<[{', '.join(decimals)}]> : tensor<{len(decimals)}x{name}>")
        assert judge.print(print_module(parse_module(dense))) == judge.print(dense)


def test_floats_are_equal_if_their_bits_are():
    quiet, signalling, again, negative = (
        FloatAttr(decode_float(pattern, f32), f32) for pattern in (0x7FC00001, 0x7F800001, 0x7F800001, 0xFF800001)
    )
    assert len({quiet, signalling, again, negative, FloatAttr(0.0, f32), FloatAttr(-0.0, f32)}) == 5
    assert signalling == again and hash(signalling) == hash(again)
    assert FloatAttr(decode_float(0x7FF0000000000001, f64), f64) != FloatAttr(float("nan"), f64)


def test_nan_with_oversized_payload_stays_nan():
    """A NaN from the Python API whose payload does not fit in f32 is still printed as a NaN."""
    assert bits_of(FloatAttr(decode_float(0xFFF0000000000001, f64), f32)) == 0xFFC00000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0x100000000 : f32", "'0x100000000' does not fit in the 32 bits of f32"),
        ("0x10 : f4E2M1FN", "does not fit in the 4 bits"),
        ("0x40 : f6E2M3FN", "does not fit in the 6 bits"),
        ("-0x1 : f32", "a bit pattern and must not have a minus sign"),
        ("1 : f32", "'1' is not a float: add a decimal point"),
        ("-1.0 : f8E8M0FNU", "f8E8M0FNU has no negative values"),
        (
            "0x3FFF8000000000000000 : f80",
            "a hexadecimal number of type f80 is not supported, because xDSL would lose some of its bits: write a",
        ),
        ("1.0e400 : f128", "the number is out of range"),
        ("1.0e400 : f4E2M1FN", "the number is out of range"),
        ("dense<1.0e400> : tensor<f4E2M1FN>", "in which literals are parsed, and the element type has no infinity"),
        ("array<f80: 1.0>", "an array cannot represent the bits of f80"),
        ("array<f32: 1>", "'1' is not a float"),
        ("array<f32: -0x1>", "must not have a minus sign"),
        ("array<f32: >", "expected a float"),
        ("array<f32: true>", "expected a float"),
        ("array<i4: 1>", "elements of type i4, expected a type of whole bytes"),
        ("1.0 : i32", "a number of type i32 must be an integer, not a float"),
        ("256 : i8", "Integer value 256 is out of range"),
        ("18446744073709551615 : index", "does not fit in the 64 bits of an index"),
        ("1 : none", "none is not a numeric type"),
        ("1.0 : tensor<2xf32>", "is not a numeric type"),
        ("- : i32", "Expected integer or float literal after '-'"),
        ("0 : i16777216", "an integer type must have at most 16777215 bits"),
        ("0 : i4294967296", "an integer type must have at most 16777215 bits"),
        ("0 : i" + "9" * 5000, "an integer type must have at most 16777215 bits"),
        ("1_0 : i32", "'}' expected"),
        ("1_0.0 : f32", "'}' expected"),
        ("0X1 : i32", "'}' expected"),
        ("+1.0 : f32", "attribute expected"),
        (".5 : f32", "three consecutive"),
        ("५ : i32", "[Uu]nexpected character"),
        ("1५ : i32", "[Uu]nexpected character"),
        ("५.0 : f32", "[Uu]nexpected character"),
        ("1.0e५ : f32", "'}' expected"),
        ("i५", "attribute expected"),
        ("dense<1_0.0> : tensor<f32>", "'1_0.0' is not a float"),
        ("dense<+1.0> : tensor<f32>", "'\\+1.0' is not a float"),
        ("dense<५.0> : tensor<f32>", "'५.0' is not a float"),
        ("dense<५> : tensor<i32>", "'५' is not an integer"),
        ("dense<1_0> : tensor<i32>", "'1_0' is not an integer"),
        ("dense<+1> : tensor<i32>", "'\\+1' is not an integer"),
        ("dense<0X7F800000> : tensor<f32>", "'0X7F800000' is not a float"),
        ("dense<0x7F80_0000> : tensor<f32>", "'0x7F80_0000' is not a float"),
        ("dense<1.0e> : tensor<f32>", "'1.0e' is not a float"),
        ("dense<.5> : tensor<f32>", "'.5' is not a float"),
        ("dense<inf.> : tensor<f32>", "'inf.' is not a float"),
        ("dense<(1.0,+2.0)> : tensor<complex<f32>>", "'\\+2.0' is not a float"),
        ('dense<"0x५५"> : tensor<i8>', "expected a string of hexadecimal digits"),
        ("affine_map<(d0) -> (d0 + ५)>", "[Uu]nexpected character"),
        ("array<i32: ५>", "[Uu]nexpected character"),
        ("array<i32: 1_0>", "'>' expected"),
    ],
)
def test_invalid_numbers_are_rejected(text: str, words: str):
    with pytest.raises(ParseError, match=words) as error:
        parse_module(with_attribute(text), "t")
    column = re.match(r"t:1:(\d+)", str(error.value))
    assert column is not None and int(column[1]) > len("module attributes {mhlo.a =")


def test_widest_integer_type_is_read_quickly():
    assert str(attribute("0 : i16777215")) == "0 : i16777215"
