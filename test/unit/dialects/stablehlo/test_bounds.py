"""Bounds of dynamic extents, algorithms of products, and unknown types are read, printed and checked."""

from __future__ import annotations

import re

import pytest
from xdsl.utils.exceptions import ParseError, VerifyException

from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.diagnostics import Refusal
from recompute.test.mlir_judge import Judge

BOUNDED = "tensor<3x?xf32, #stablehlo.bounds<?, 4>>"
RESHAPE = "%r = stablehlo.reshape %a : (tensor<3xf32>) -> tensor<?x1xf32"


def _program(line: str, *types: str) -> str:
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in zip("abc", types, strict=False))
    return f"func.func @f({arguments}) {{\n  {line}\n  return\n}}"


@pytest.mark.parametrize(
    ("line", "type_"),
    [
        (f"%r = stablehlo.add %a, %a : {BOUNDED}", BOUNDED),
        (f"%r = stablehlo.slice %a [0:2, 0:4] : ({BOUNDED}) -> tensor<2x4xf32>", BOUNDED),
        (f"{RESHAPE}, #stablehlo.bounds<3, ?>>", "tensor<3xf32>"),
        ("", "tensor<?xf32, #stablehlo.type_extensions<bounds = [4]>>"),
        ("", "tensor<?x?xf32, #stablehlo.bounds<?, 9223372036854775807>>"),
    ],
)
def test_bounds_are_read_as_by_jaxlib(line: str, type_: str, judge: Judge) -> None:
    module = parse_module(_program(line, type_))
    verify_module(module)
    theirs = judge.print(_program(line, type_), debuginfo=False)
    assert judge.print(print_module(module), debuginfo=False) == theirs


@pytest.mark.parametrize(
    ("line", "types", "words"),
    [
        ("", ["tensor<?x?xf32, #stablehlo.bounds<3>>"], "has 1 bounds, expected one for each of 2 dimensions"),
        ("", ["tensor<3xf32, #stablehlo.bounds<4>>"], "has the bound 4 for the static extent 3"),
        (
            f"%r = stablehlo.negate %a : ({BOUNDED}) -> tensor<3x5xf32>",
            [BOUNDED],
            "the result has type tensor<3x5xf32>",
        ),
        (
            f"%r = stablehlo.slice %a [0:2, 0:5] : ({BOUNDED}) -> tensor<2x5xf32>",
            [BOUNDED],
            "C3: 0:5:1 is not a valid slice",
        ),
        (
            f"%r = stablehlo.pad %a, %b, low = [0, -5], high = [0, 0], interior = [0, 0] : ({BOUNDED}, tensor<f32>)"
            " -> tensor<3x?xf32>",
            [BOUNDED, "tensor<f32>"],
            "the padded shape has a negative extent: [3, -1]",
        ),
        (f"{RESHAPE}>", ["tensor<3xf32>"], "expected a static shape, or one dynamic extent with a bound"),
        (
            "%r = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<3xf32>) -> tensor<?x3xf32>",
            ["tensor<3xf32>"],
            "expected a static shape, or one dynamic extent with a bound",
        ),
        (
            "%r = stablehlo.reshape %a : (tensor<?x?xf32, #stablehlo.bounds<5, 5>>)"
            " -> tensor<?x?xf32, #stablehlo.bounds<5, 5>>",
            ["tensor<?x?xf32, #stablehlo.bounds<5, 5>>"],
            "expected a static shape, or one dynamic extent with a bound",
        ),
    ],
)
def test_extents_beyond_their_bounds_are_rejected(line: str, types: list[str], words: str, judge: Judge) -> None:
    with pytest.raises((Refusal, VerifyException), match=re.escape(words)):
        verify_module(parse_module(_program(line, *types)))
    with pytest.raises(AssertionError, match="jaxlib refuses"):
        judge.print(_program(line, *types))


def _product(operands: str, total: str, products: int = 1, components: int = 1, imprecise: str = "false") -> str:
    algorithm = (
        f"<lhs_precision_type = {operands}, rhs_precision_type = {operands}, accumulation_type = {total}, "
        f"lhs_component_count = {components}, rhs_component_count = 1, num_primitive_operations = {products}, "
        f"allow_imprecise_accumulation = {imprecise}>"
    )
    types = "(tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>"
    line = f"%r = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], algorithm = {algorithm} : {types}"
    return _program(line, "tensor<2x2xf32>")


@pytest.mark.parametrize(
    "program",
    [
        *(_product("bf16", "f32", products) for products in (1, 3, 6, 9)),
        *(_product(operands, operands) for operands in ("f16", "bf16", "f32", "f64")),
        _product("tf32", "f32", 3),
        _product("f8E4M3FN", "f32", imprecise="true"),
    ],
)
def test_supported_dot_algorithms_are_accepted(program: str, judge: Judge) -> None:
    parse_module(program).verify()
    judge.print(program)


@pytest.mark.parametrize(
    "program",
    [
        _product("f32", "f32", components=3),
        _product("f32", "f32", imprecise="true"),
        _product("bf16", "f32", 2),
        _product("f16", "f64"),
        _product("f8E4M3FN", "f16"),
    ],
)
def test_unsupported_dot_algorithms_are_rejected(program: str, judge: Judge) -> None:
    with pytest.raises(VerifyException, match="I8: no known hardware supports the algorithm"):
        parse_module(program).verify()
    with pytest.raises(AssertionError, match="not known to be supported on any hardware"):
        judge.print(program)


@pytest.mark.parametrize("type_", ["!stablehlo.foobar", "!sdy.foobar<4>", "!chlo.foobar"])
def test_unknown_types_of_known_dialects_are_rejected(type_: str) -> None:
    with pytest.raises(ParseError, match=re.escape(f"unknown type {type_.partition('<')[0]}")):
        parse_module(f"func.func private @f({type_})")
