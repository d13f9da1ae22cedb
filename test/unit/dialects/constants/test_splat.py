"""Splat constants of every dialect are stored as one element, and expanded correctly."""

from __future__ import annotations

import resource

import pytest
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, TensorType, f32, i1, i32
from xdsl.ir import Attribute

from recompute.dialects.constants.dense import MAX_EXPANDED, SplatBytes, small_bits, splat_bytes, to_numpy
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.type_guards import AnyDense, is_standard_dense
from recompute.test.mlir_judge import Judge

LARGE = "tensor<65536x65536xf32>"


def constant(text: str) -> AnyDense:
    op = next(iter(parse_module(f"%c = arith.constant dense<{text}").ops))
    assert isinstance(op, ConstantOp) and is_standard_dense(op.value)
    return op.value


def test_large_splat_is_read_unexpanded():
    """A splat that would take sixteen gigabytes is read without expanding it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = f"func.func @f() {{\n  %c = arith.constant dense<0xFF800000> : {LARGE}\n  func.return\n}}"
    module = parse_module(text)
    module.verify()
    assert "arith.constant dense<0xFF800000> : tensor<65536x65536xf32>" in print_module(module)
    first, other = constant(f"1.0> : {LARGE}"), constant(f"1.0> : {LARGE}")
    assert first == other and hash(first) == hash(other) and first != constant(f"2.0> : {LARGE}")
    assert small_bits(first) == b"\x00\x00\x80\x3f" and to_numpy(first)[65535, 65535] == 1.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("1.5> : tensor<2x2xf32>", f32, [1.5] * 4),
        ("true> : tensor<3xi1>", i1, [-1] * 3),
        ("7> : tensor<3xi32>", i32, [7] * 3),
    ],
)
def test_splat_data_is_expanded_on_access(text: str, kind: Attribute, values: list[float]):
    result = constant(text)
    assert isinstance(result.data, SplatBytes) and isinstance(result.data, BytesAttr)
    assert len(result) == len(values) and result.is_splat() and [*result.get_values()] == values
    expanded = DenseIntOrFPElementsAttr(result.type, BytesAttr(result.data.data))
    assert result == expanded and expanded == result and hash(result) == hash(expanded)
    assert str(result) == str(expanded) and {result, expanded} == {expanded}
    result.verify()


def test_single_element_is_no_splat():
    assert type(splat_bytes(b"ab", 1)) is BytesAttr


def test_splats_are_equal_if_their_bytes_are():
    assert splat_bytes(b"\0\0", 6) == splat_bytes(b"\0\0\0", 4) == BytesAttr(bytes(12))
    assert splat_bytes(b"ab", 2) != splat_bytes(b"ba", 2) and splat_bytes(b"ab", 2) != splat_bytes(b"ab", 3)
    assert splat_bytes(b"ab", 2) != "abab"


def test_unexpandable_splat_equals_only_splats():
    count = MAX_EXPANDED + 1
    large = splat_bytes(b"a", count)
    assert large == splat_bytes(b"a", count) and len({large, splat_bytes(b"a", count)}) == 1
    assert large != BytesAttr(b"a" * count) and large.data == b"a" * count


def test_equal_listed_elements_are_stored_once():
    assert constant("[1.0, 1.0]> : tensor<2xf32>") == constant("1.0> : tensor<2xf32>")
    assert constant("[0.0, -0.0]> : tensor<2xf32>").data.data == b"\0\0\0\0\0\0\0\x80"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("> : tensor<0xf32>", "dense<> : tensor<0xf32>"),
        ("[]> : tensor<0xf32>", "dense<> : tensor<0xf32>"),
        ("[[], []]> : tensor<2x0xf32>", "dense<> : tensor<2x0xf32>"),
        ('"0x"> : tensor<2x0xf32>', "dense<> : tensor<2x0xf32>"),
        ("1.0> : tensor<0xf32>", "dense<1.000000e+00> : tensor<0xf32>"),
        ('"0x000080FF"> : tensor<0x2xf32>', "dense<0xFF800000> : tensor<0x2xf32>"),
        ("true> : tensor<0xi1>", "dense<true> : tensor<0xi1>"),
    ],
)
@pytest.mark.parametrize("operation", ["arith.constant", "stablehlo.constant"])
def test_splat_and_list_of_no_elements_are_distinct(text: str, printed: str, operation: str, judge: Judge):
    """A splat and a list of an empty tensor are distinct, as in MLIR."""
    program = f"func.func @f() {{\n  %c = {operation} dense<{text}\n  func.return\n}}"
    ours = print_module(parse_module(program))
    assert f"{operation} {printed}" in ours and print_module(parse_module(ours)) == ours
    assert judge.print(ours, debuginfo=False) == judge.print(program, debuginfo=False)


@pytest.mark.parametrize("text", ["> : tensor<0xf32>", "1.0> : tensor<0xf32>"])
def test_constant_without_elements_has_no_data(text: str):
    result = constant(text)
    assert result.data.data == b"" and to_numpy(result).shape == (0,)
    assert result == DenseIntOrFPElementsAttr(TensorType(f32, [0]), BytesAttr(b"")) == result
