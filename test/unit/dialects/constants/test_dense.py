"""The texts of this project and of JAX preserve the exact bits of constants of every element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float8E8M0FNUType,
    Float32Type,
    Float64Type,
    TensorType,
    f32,
)
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from recompute.dialects.constants.dense import DenseAttr, to_numpy
from recompute.dialects.constants.elements import FLOATS, bit_width, dtype_of, encode
from recompute.dialects.context import make_context
from recompute.dialects.stablehlo.creation import ConstantOp
from recompute.mlir_io.parser import ModuleParser, parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.type_guards import is_standard_dense
from recompute.test.mlir_judge import Judge

FLOAT_NAMES = (
    "f64 f32 f16 bf16 f8E5M2 f8E4M3 f8E4M3FN f8E5M2FNUZ f8E4M3FNUZ f8E4M3B11FNUZ f8E3M4 f8E8M0FNU f6E2M3FN f6E3M2FN"
    " f4E2M1FN"
).split()
INTEGER_NAMES = "i1 i2 i4 i8 i16 i32 i64 ui2 ui4 ui8 ui16 ui32 ui64".split()


def attribute(literal: str, type: str) -> DenseAttr:
    """Return `dense<literal> : type` as the value of a constant."""
    op = ModuleParser(make_context(), f"stablehlo.constant dense<{literal}> : {type}").parse_operation()
    assert isinstance(op, ConstantOp) and isinstance(op.value, DenseAttr)
    return op.value


def bits(literal: str, type: str) -> list[int]:
    """Return the elements as unsigned integers."""
    array = to_numpy(attribute(literal, type))
    return np.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}").tolist()


def module_with(*values: DenseAttr) -> str:
    constants = "\n".join(f"  %c{index} = stablehlo.constant {value}" for index, value in enumerate(values))
    return f"func.func @constants() {{\n{constants}\n  return\n}}"


@pytest.mark.parametrize(
    ("literal", "type", "expected"),
    [
        ("0xFF800000", "tensor<f32>", [0xFF800000]),  # -inf, which xDSL 0.74 reads as 4286578688
        ("0x7FC00000", "tensor<f32>", [0x7FC00000]),
        ("0xFFC00001", "tensor<f32>", [0xFFC00001]),  # a negative NaN with a payload
        ("0x7F800001", "tensor<f32>", [0x7F800001]),  # a signalling NaN
        ("-0.0", "tensor<f32>", [0x80000000]),
        ("[0.0, -0.0]", "tensor<2xf32>", [0, 0x80000000]),  # equal as numbers, but no splat
        ("1.0e-45", "tensor<f32>", [1]),  # the smallest denormal
        ("9.99999993E-9", "tensor<f32>", [0x322BCC77]),
        ("1.0e300", "tensor<f32>", [0x7F800000]),
        ("0xFF80", "tensor<bf16>", [0xFF80]),  # xDSL 0.74: 65536.0
        ("0x7E01", "tensor<f16>", [0x7E01]),
        ("1.1920928955078125e-07", "tensor<f64>", [0x3E80000000000000]),
        ("0x7FF0000000000001", "tensor<f64>", [0x7FF0000000000001]),
        ("1.1875", "tensor<f8E4M3FN>", [0x3A]),  # a tie, to even
        ("-1.0e30", "tensor<f8E5M2FNUZ>", [0x80]),  # out of range is NaN there
        ("-1.0e30", "tensor<f4E2M1FN>", [0xF]),  # and the largest number there
        ('"0x0000803F00000040"', "tensor<2xf32>", [0x3F800000, 0x40000000]),
        ('"0x0000803F"', "tensor<3xf32>", [0x3F800000] * 3),
        ("[[1, 2], [-3, 0xFF]]", "tensor<2x2xi8>", [1, 2, 0xFD, 0xFF]),
        ("[[-1, 7]]", "tensor<1x2xi4>", [0xF, 7]),
        ('"0xFF17"', "tensor<2xi4>", [0xF, 7]),  # the upper half of a byte is not part of an i4
        ('"0x000102FF"', "tensor<4xi1>", [0, 1, 1, 1]),
        ("[true, false, 1, -1]", "tensor<4xi1>", [1, 0, 1, 1]),
        ("18446744073709551615", "tensor<ui64>", [0xFFFFFFFFFFFFFFFF]),
        ("", "tensor<2x0xf32>", []),
        ("[[], []]", "tensor<2x0xf32>", []),
        ("1.0", "tensor<0xf32>", []),
        ('[1.0, // one > two\n 2.0 // "and"\n]', "tensor<2xf32>", [0x3F800000, 0x40000000]),
        ("// one\n1.0", "tensor<f32>", [0x3F800000]),
        ('// a string of bytes\n"0x0000803F" // "1.0"\n', "tensor<f32>", [0x3F800000]),
        ("- 1.0", "tensor<f32>", [0xBF800000]),
        ("[1, - 2]", "tensor<2xi8>", [1, 0xFE]),
        ("0.0", "tensor<f8E8M0FNU>", [0]),  # which has no zero: the smallest number
        ("7.3e-39", "tensor<f8E8M0FNU>", [0]),
        ("9.0e-39", "tensor<f8E8M0FNU>", [1]),
    ],
)
def test_literals_have_the_expected_bits(literal: str, type: str, expected: list[int]):
    assert bits(literal, type) == expected


def test_complex_literals_have_the_expected_bits():
    array = to_numpy(attribute("[( 1.0 , - 0.0), (0x7FC00001, // a NaN\n 2.0)]", "tensor<2xcomplex<f32>>"))
    assert array.dtype == np.complex64
    assert array.view(np.uint32).tolist() == [0x3F800000, 0x80000000, 0x7FC00001, 0x40000000]


@pytest.mark.parametrize(
    ("literal", "type", "words"),
    [
        ("1", "tensor<f32>", "not a float: add a decimal point"),
        ("-0x1", "tensor<f32>", "not a float"),
        ("0x100000000", "tensor<f32>", "does not fit in the 32 bits"),
        ("0x40", "tensor<f6E2M3FN>", "does not fit in the 6 bits"),
        ("-1.0", "tensor<f8E8M0FNU>", "no negative values"),
        ("2", "tensor<i1>", "does not fit in an integer of 1 bits"),
        ("-9", "tensor<i4>", "does not fit in an integer of 4 bits"),
        ("-1", "tensor<ui32>", "does not fit in an unsigned integer of 32 bits"),
        ("4294967296", "tensor<i32>", "does not fit"),
        ("true", "tensor<i32>", "is valid only for i1"),
        ("1.5", "tensor<i32>", "not an integer"),
        ("(1.0,2.0)", "tensor<f32>", "complex"),
        ("1.0", "tensor<complex<f32>>", "is not a complex number"),
        ("[1.0]", "tensor<f32>", "shape \\[1\\] does not match"),
        ("[1.0, 2.0]", "tensor<3xf32>", "shape \\[2\\] does not match"),
        ("[[1], [2, 3]]", "tensor<2x1xi32>", "rows differ"),
        ("[1 2]", "tensor<2xi32>", "expected a number"),
        ("", "tensor<2xf32>", "empty literal"),
        ('"0000803F"', "tensor<f32>", "hexadecimal digits"),
        ('"0x0000803F00"', "tensor<f32>", "5 bytes of data"),
        ("1.0 // no end", "tensor<f32>", "expected '<' literal '>'"),
        ('"0x00', "tensor<f32>", "expected '<' literal '>'"),
        ("1.0 / 2.0", "tensor<f32>", "expected a number"),
        ("1.0", "tensor<f80>", "numpy has no type for elements of type f80"),
        ("1.0", "tensor<?xf32>", "static shape"),
        ("1.0", "vector<2xf32>", "a constant must be a tensor"),
    ],
)
def test_invalid_literals_are_rejected(literal: str, type: str, words: str):
    with pytest.raises(ParseError, match=words):
        attribute(literal, type)


def every_pattern(type: str) -> list[str]:
    """Return all bit patterns of a small type, or a thousand of a large one, including all special values."""
    width = bit_width(dtype_of(attribute("0x1", f"tensor<{type}>").type.element_type))
    if width <= 8:
        patterns = list(range(1 << width))
    else:
        random = np.random.default_rng(0).integers(0, 1 << 63, 1000).tolist()
        edges = [
            sign << width - 1 | rest for sign in (0, 1) for rest in (0, 1, (1 << width - 1) - 1, 0x7F << width - 8)
        ]
        patterns = edges + [2 * pattern + 1 >> 64 - width for pattern in random]
    return [f"0x{pattern:X}" for pattern in patterns]


@pytest.mark.parametrize("type", FLOAT_NAMES)
def test_every_float_round_trips(type: str, judge: Judge):
    """Every printed pattern is read as the same bits, here and in JAX."""
    values = [attribute(pattern, f"tensor<{type}>") for pattern in every_pattern(type)]
    for value in values:
        literal = str(value).partition("dense<")[2].partition(">")[0]
        assert attribute(literal, f"tensor<{type}>") == value
    assert_jax_agrees(values, judge)


@pytest.mark.parametrize("type", INTEGER_NAMES)
def test_integers_round_trip(type: str, judge: Judge):
    width, unsigned = int(type.lstrip("ui")), type.startswith("u")
    numbers = [0, 1, (1 << width) - 1, 1 << width - 1] + ([] if unsigned else [-1, -(1 << width - 1)])
    values = [attribute(str(number), f"tensor<{type}>") for number in numbers]
    values.append(attribute(str(numbers), f"tensor<{len(numbers)}x{type}>"))
    for value in values:
        literal = str(value).partition("dense<")[2].partition(">")[0]
        assert attribute(literal, str(value.type)) == value
    assert_jax_agrees(values, judge)


def assert_jax_agrees(values: Sequence[DenseAttr], judge: Judge) -> None:
    """Check that JAX reads our text, and we read JAX's, to the same values."""
    module = parse_module(judge.print(module_with(*values), debuginfo=False))
    read = [op.value for op in module.walk() if isinstance(op, ConstantOp)]
    assert read == list(values)


@pytest.mark.parametrize("type", [name for name in FLOAT_NAMES if name != "f8E8M0FNU"])
def test_decimals_round_as_jax_rounds(type: str, judge: Judge):
    """Random decimals, exact ties and their neighbours are rounded once, to nearest even, as in MLIR."""
    element = attribute("1.0", f"tensor<{type}>").type.element_type
    dtype = dtype_of(element)
    texts = [f"{number:.17e}" for number in hard_numbers(dtype)]
    judged = judge.print(
        "func.func @f() {\n"
        + "\n".join(f"  %c{i} = stablehlo.constant dense<{text}> : tensor<{type}>" for i, text in enumerate(texts))
        + "\n  return\n}",
        debuginfo=False,
    )
    theirs = [op.value for op in parse_module(judged).walk() if isinstance(op, ConstantOp)]
    ours = [DenseAttr.get(TensorType(element, []), encode([text], element)) for text in texts]
    wrong = [(text, str(a), str(b)) for text, a, b in zip(texts, ours, theirs, strict=True) if a != b]
    assert not wrong


def hard_numbers(dtype: np.dtype[Any]) -> list[float]:
    """Return numbers of the type, midpoints between neighbours, doubles next to these, and values of every magnitude
    and out of range."""
    width = bit_width(dtype)
    random = np.random.default_rng(1)
    patterns = random.integers(0, (1 << width - 1) - 1, 300).astype(f"u{dtype.itemsize}")
    with np.errstate(all="ignore"):
        values, after = (bits.view(dtype).astype(np.float64) for bits in (patterns, patterns + patterns.dtype.type(1)))
        ties = (values + after) / 2
        beside = [np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)]
    scattered = random.standard_normal(100) * 10.0 ** random.integers(-60, 60, 100)
    numbers = np.concatenate([values, ties, *beside, -ties, scattered, [0.0, -0.0, 1e300, -1e300, 1e-300]])
    return numbers[np.isfinite(numbers)].tolist()


def test_f8e8m0_decimals(judge: Judge):
    """Decimals of f8E8M0FNU, which has only powers of two, are rounded as in MLIR."""
    values = [attribute(f"{2.0**exponent:.17e}", "tensor<f8E8M0FNU>") for exponent in (-127, -3, 0, 1, 127)]
    assert [value.data.data[0] for value in values] == [0, 124, 127, 128, 254]
    assert isinstance(values[0].type.element_type, Float8E8M0FNUType)
    assert_jax_agrees(values, judge)


def test_tests_cover_every_float_type():
    assert {type(attribute("1.0", f"tensor<{name}>").type.element_type) for name in FLOAT_NAMES} == FLOATS.keys()


def test_splat_is_stored_as_one_element():
    value = attribute("0.1", "tensor<65536x65536xf32>")
    assert value.is_splat and len(value.data.data) == 4
    array = to_numpy(value)
    assert array.shape == (65536, 65536) and array[1, 2] == np.float32(0.1)
    (op,) = parse_module(f'%c = "stablehlo.constant"() <{{value = {value}}}> : () -> {value.type}').ops
    assert isinstance(op, ConstantOp) and op.value == value


def test_equal_bits_are_equal_attributes():
    """Constants are equal if and only if their bits are equal, whatever the notation."""
    item = attribute("1.0", "tensor<2xf32>")
    assert item == attribute("[1.0, 0x3F800000]", "tensor<2xf32>") == attribute('"0x0000803F0000803F"', "tensor<2xf32>")
    assert hash(item) == hash(attribute("[1.0, 1.0]", "tensor<2xf32>"))
    assert attribute("0.0", "tensor<f32>") != attribute("-0.0", "tensor<f32>")
    assert attribute("0x7FC00000", "tensor<f32>") == attribute("0x7FC00000", "tensor<f32>")


def test_xdsl_parser_also_stores_splats_as_one_element():
    text = '%c = "stablehlo.constant"() <{value = dense<1.5> : tensor<1000xf32>}> : () -> tensor<1000xf32>'
    op = Parser(make_context(), text).parse_operation()
    assert isinstance(op, ConstantOp)
    assert op.value == attribute("1.5", "tensor<1000xf32>")


def test_large_constants_are_hexadecimal(judge: Judge):
    numbers = np.random.default_rng(2).standard_normal((20, 30)).astype(np.float32)
    value = DenseAttr.from_numpy(numbers, f32)
    assert str(value).startswith('dense<"0x')
    assert np.array_equal(to_numpy(value).view(np.uint32), numbers.view(np.uint32))
    assert_jax_agrees([value], judge)


def test_constants_of_other_dialects_are_exact():
    """The dense attributes of xDSL are read and printed with the exact bits of the text."""
    text = "%c = arith.constant dense<[0xFF800000, -0.0, 0.0, 0x7FC00001]> : tensor<4xf32>"
    (op,) = (module := parse_module(text)).ops
    assert isinstance(op, arith.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr)
    assert is_standard_dense(op.value)
    expected = [0xFF800000, 0x80000000, 0, 0x7FC00001]
    assert to_numpy(op.value).view(np.uint32).tolist() == expected
    again = parse_module(print_module(module))
    assert "0x7FC00001" in print_module(module)
    assert print_module(again) == print_module(module)


@pytest.mark.parametrize(
    ("literal", "type", "expected"),
    [
        ("[true, false]", "vector<2xi1>", [True, False]),
        ("[-1, 7]", "tensor<2xi4>", [-1, 7]),
        ("3", "tensor<2xindex>", [3, 3]),
    ],
)
def test_small_integers_of_other_dialects_are_exact(literal: str, type: str, expected: list[int]):
    """Integers smaller than a byte are exact, although xDSL sign-extends them."""
    (op,) = parse_module(f'"test.op"() {{value = dense<{literal}> : {type}}} : () -> ()').ops
    value = op.attributes["value"]
    assert is_standard_dense(value)
    assert to_numpy(value).tolist() == expected
    stock = Parser(make_context(), f"dense<{literal}> : {type}").parse_attribute()
    assert value == stock


def test_data_of_wrong_size_is_rejected():
    with pytest.raises(VerifyException, match="has 3 bytes of data, expected"):
        DenseAttr.get(TensorType(f32, [4]), b"abc")


@pytest.mark.parametrize("element", [Float32Type(), BFloat16Type(), Float64Type()])
def test_constant_from_numpy_keeps_values(element: Float32Type | BFloat16Type | Float64Type):
    value = DenseAttr.from_numpy(np.array([[1.0, 2.5]]), element)
    assert value.type == TensorType(element, [1, 2])
    assert to_numpy(value).astype(np.float64).tolist() == [[1.0, 2.5]]


@pytest.mark.parametrize(
    ("before", "form"),
    [
        ("#a = dense<0x7F800001> : tensor<8192x8192xf32>", "stablehlo.constant #a"),
        ("#a = dense<0x7F800001> : tensor<8192x8192xf32>", "stablehlo.constant {mhlo.k = 1 : i64} #a"),
        ("", "stablehlo.constant() <{value = VALUE}> : () -> TYPE"),
        ("", "stablehlo.constant() <{value = VALUE}> {mhlo.k = 1 : i64} : () -> TYPE"),
        ("", "stablehlo.constant() {value = VALUE, mhlo.k = 1 : i64} : () -> TYPE"),
        ("", '"stablehlo.constant"() <{value = VALUE}> : () -> TYPE'),
    ],
)
def test_every_form_of_a_large_splat_is_read(before: str, form: str, judge: Judge):
    type = "tensor<8192x8192xf32>"
    spelled = form.replace("VALUE", f"dense<0x7F800001> : {type}").replace("TYPE", type)
    text = f"{before}\nfunc.func @f() -> {type} {{\n  %c = {spelled}\n  func.return %c : {type}\n}}"
    (op,) = (op for op in parse_module(text).walk() if isinstance(op, ConstantOp))
    assert isinstance(op.value, DenseAttr) and op.value.data.data == b"\x01\x00\x80\x7f"
    assert judge.print(print_module(parse_module(text)), debuginfo=False) == judge.print(text, debuginfo=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#a = 5 : i32\n%c = stablehlo.constant #a", "expected the value of the constant"),
        ("#a = dense<1> : vector<2xi32>\n%c = stablehlo.constant #a", "expected the value of the constant"),
        ("%c = stablehlo.constant(%x) <{}> : () -> tensor<f32>", "Expected '\\)'"),
    ],
)
def test_invalid_constants_are_rejected(text: str, words: str):
    with pytest.raises(ParseError, match=words):
        parse_module(text)
