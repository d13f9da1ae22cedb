"""StableHLO operations without a definition here: what MLIR prints in their custom form is what it prints in generic
form, and is read as that."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.mlir_io.undefined_operations import FORMS

from .judge import Judge

PROGRAM = """func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>, %s: tensor<8xf32>, %c: tensor<f32>,
                          %n: tensor<1xi64>, %t: tuple<tensor<f32>, tuple<>>, %e: tensor<i32>) {{
  {line}
  return
}}"""
LINES = {
    "broadcast": '"stablehlo.broadcast"(%s) {broadcast_sizes = array<i64: 4>} : (tensor<8xf32>) -> tensor<4x8xf32>',
    "create_token": '"stablehlo.create_token"() {a = 1 : i32} : () -> !stablehlo.token',
    "dot": '"stablehlo.dot"(%a, %b) : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>',
    "dot with precision": """"stablehlo.dot"(%a, %b) {precision_config = [#stablehlo<precision HIGH>,
        #stablehlo<precision DEFAULT>]} : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>""",
    "dynamic_broadcast_in_dim": """"stablehlo.dynamic_broadcast_in_dim"(%s, %n) {broadcast_dimensions = array<i64: 0>,
        known_nonexpanding_dimensions = array<i64: 0>, a = 1 : i32}
        : (tensor<8xf32>, tensor<1xi64>) -> tensor<?xf32>""",
    "dynamic_iota": '"stablehlo.dynamic_iota"(%n) {iota_dimension = 0 : i64} : (tensor<1xi64>) -> tensor<?xf32>',
    "dynamic_pad": """"stablehlo.dynamic_pad"(%s, %c, %n, %n, %n) : (tensor<8xf32>, tensor<f32>, tensor<1xi64>,
        tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>""",
    "dynamic_reshape": '"stablehlo.dynamic_reshape"(%s, %n) : (tensor<8xf32>, tensor<1xi64>) -> tensor<?xf32>',
    "einsum": """"stablehlo.einsum"(%a, %b) {einsum_config = "ab,bc->ac"} : (tensor<4x8xf32>, tensor<8x3xf32>)
        -> tensor<4x3xf32>""",
    "get_dimension_size": '"stablehlo.get_dimension_size"(%a) {dimension = 1 : i64} : (tensor<4x8xf32>) -> tensor<i32>',
    "get_tuple_element": """"stablehlo.get_tuple_element"(%t) {index = 0 : i32, a = 1 : i32}
        : (tuple<tensor<f32>, tuple<>>) -> tensor<f32>""",
    "real_dynamic_slice": """"stablehlo.real_dynamic_slice"(%s, %n, %n, %n) : (tensor<8xf32>, tensor<1xi64>,
        tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>""",
    "rng": """"stablehlo.rng"(%c, %c, %n) {rng_distribution = #stablehlo<rng_distribution NORMAL>}
        : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>""",
    "set_dimension_size": """"stablehlo.set_dimension_size"(%s, %e) {dimension = 0 : i64} : (tensor<8xf32>, tensor<i32>)
        -> tensor<?xf32, #stablehlo.bounds<8>>""",
    "tuple": """"stablehlo.tuple"(%a, %t) {a = 1 : i32} : (tensor<4x8xf32>, tuple<tensor<f32>, tuple<>>)
        -> tuple<tensor<4x8xf32>, tuple<tensor<f32>, tuple<>>>""",
    "tuple of nothing": '"stablehlo.tuple"() : () -> tuple<>',
    "unary_einsum": '"stablehlo.unary_einsum"(%a) {einsum_config = "ab->ba"} : (tensor<4x8xf32>) -> tensor<8x4xf32>',
}
MALFORMED = {
    "%r = stablehlo.dot %a, : (tensor<4x8xf32>) -> tensor<4xf32>": "Expected 'precision'",
    "%r = stablehlo.rng %c, %c, %n : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>": "distribution",
    "%r = stablehlo.tuple %a : tensor<4x8xf32>": "expected a type tuple<...>",
    "%r = stablehlo.tuple %a, : tuple<tensor<4x8xf32>>": "expected an operand",
    "%r = stablehlo.get_tuple_element %t : (tuple<tensor<f32>>) -> tensor<f32>": "Expected '['",
    "%r = stablehlo.get_dimension_size %a, dim = x : (tensor<4x8xf32>) -> tensor<i32>": "x",
    "%r = stablehlo.dynamic_reshape %s, %n : (tensor<8xf32>) -> tensor<?xf32>": "expected 1 operand types but had 2",
}


def test_every_form_has_a_case() -> None:
    assert {f"stablehlo.{name.split()[0]}" for name in LINES} == set(FORMS)


@pytest.mark.parametrize("name", LINES)
def test_custom_and_generic_form_are_read_alike(name: str, judge: Judge) -> None:
    program = PROGRAM.format(line=f"%r = {LINES[name]}")
    custom, generic = (judge.print(program, generic=form, debuginfo=False) for form in (False, True))
    line = next(line for line in custom.splitlines() if "stablehlo." in line and "func" not in line)
    assert '"stablehlo.' not in line, "MLIR prints a custom form"
    read = print_module(parse_module(custom))
    assert read == print_module(parse_module(generic))
    assert judge.print(read, debuginfo=False) == custom


@pytest.mark.parametrize("line", MALFORMED)
def test_malformed(line: str) -> None:
    with pytest.raises(Exception) as caught:
        parse_module(PROGRAM.format(line=line))
    assert MALFORMED[line] in str(caught.value)
    assert "<input>:3:" in str(caught.value)
