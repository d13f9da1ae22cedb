"""Conversions, comparisons and selections of `arith` on scalars, tensors and vectors, in both forms."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.utils.exceptions import ParseError, VerifyException

from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.test.unit.interpreters.evaluate import array, evaluate

CONVERSIONS = {
    "extsi": ("i8", "i32"),
    "extui": ("i8", "i32"),
    "trunci": ("i32", "i8"),
    "index_cast": ("index", "i32"),
    "index_castui": ("i32", "index"),
    "sitofp": ("i32", "f32"),
    "uitofp": ("i32", "f32"),
    "fptosi": ("f32", "i32"),
    "fptoui": ("f32", "i32"),
}
SHAPES = ["ELEMENT", "tensor<2xELEMENT>", "tensor<?x3xELEMENT>", "vector<4xELEMENT>", "vector<[4]xELEMENT>"]


def function(body: str, *types: str) -> str:
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in zip("abc", types, strict=False))
    return f"func.func @f({arguments}) {{\n  {body}\n  func.return\n}}"


def assert_round_trip(text: str) -> None:
    """Assert that both forms of the program are read back as the same program."""
    module = parse_module(text)
    module.verify()
    for generic in (False, True):
        again = parse_module(print_module(module, generic=generic))
        assert again.is_structurally_equivalent(module)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_round_trip(name: str, shape: str) -> None:
    source, target = (shape.replace("ELEMENT", element) for element in CONVERSIONS[name])
    text = function(f"%0 = arith.{name} %a : {source} to {target}", source)
    assert_round_trip(text)
    assert f"arith.{name} %a : {source} to {target}" in print_module(parse_module(text))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("comparison", "element"), [("cmpi slt,", "i32"), ("cmpf une,", "f32"), ("cmpi ult,", "index")]
)
def test_comparisons_have_a_result_of_the_same_shape(comparison: str, element: str, shape: str) -> None:
    type_ = shape.replace("ELEMENT", element)
    text = function(f"%0 = arith.{comparison} %a, %a : {type_}", type_)
    assert_round_trip(text)
    (comparison_op,) = (op for op in parse_module(text).walk() if op.name.startswith("arith."))
    assert str(comparison_op.results[0].type) == shape.replace("ELEMENT", "i1")


@pytest.mark.parametrize("shape", SHAPES)
def test_selection_by_a_condition_of_the_same_shape(shape: str) -> None:
    condition, type_ = (shape.replace("ELEMENT", element) for element in ("i1", "f32"))
    types = type_ if condition == "i1" else f"{condition}, {type_}"
    assert_round_trip(function(f"%0 = arith.select %c, %a, %b {{tag}} : {types}", type_, type_, condition))


def test_scalar_condition_selects_a_tensor() -> None:
    assert_round_trip(function("%0 = arith.select %b, %a, %a : tensor<2xf32>", "tensor<2xf32>", "i1"))


@pytest.mark.parametrize("flags", ["", " fastmath<fast>"])
def test_float_remainder_round_trips(flags: str) -> None:
    assert_round_trip(function(f"%0 = arith.remf %a, %a{flags} : tensor<2xf32>", "tensor<2xf32>"))


@pytest.mark.parametrize(
    ("body", "types"),
    [
        ("%0 = arith.extui %a : tensor<2xi8> to tensor<3xi32>", ["tensor<2xi8>"]),
        ("%0 = arith.extsi %a : tensor<2xi8> to vector<2xi32>", ["tensor<2xi8>"]),
        ("%0 = arith.extsi %a : tensor<2xi32> to tensor<2xi32>", ["tensor<2xi32>"]),
        ("%0 = arith.trunci %a : vector<2xi8> to vector<2xi32>", ["vector<2xi8>"]),
        ("%0 = arith.sitofp %a : tensor<2xf32> to tensor<2xf32>", ["tensor<2xf32>"]),
        ("%0 = arith.fptosi %a : tensor<2xf32> to f32", ["tensor<2xf32>"]),
        ("%0 = arith.index_cast %a : tensor<2xi32> to tensor<2xi64>", ["tensor<2xi32>"]),
        ('%0 = "arith.cmpi"(%a, %a) <{predicate = 2 : i64}> : (T, T) -> i1', ["tensor<2xi32>"]),
        ('%0 = "arith.cmpi"(%a, %a) <{predicate = 2 : i64}> : (T, T) -> tensor<3xi1>', ["tensor<2xi32>"]),
        ("%0 = arith.select %b, %a, %a : tensor<3xi1>, tensor<2xi32>", ["tensor<2xi32>", "tensor<3xi1>"]),
        ("%0 = arith.select %b, %a, %a : tensor<2xi8>, tensor<2xi32>", ["tensor<2xi32>", "tensor<2xi8>"]),
    ],
)
def test_invalid_operand_types_are_rejected(body: str, types: list[str]) -> None:
    with pytest.raises((ParseError, VerifyException)):
        parse_module(function(body.replace("T", types[0]), *types)).verify()


def test_unknown_predicate_is_named() -> None:
    with pytest.raises(ParseError, match=r"unknown predicate 'less' of arith\.cmpi"):
        parse_module(function("%0 = arith.cmpi less, %a, %a : tensor<2xi32>", "tensor<2xi32>"))


def test_arith_is_executed_on_tensors() -> None:
    numbers, others = array([5.5, -5.5, 3.0], "f32"), array([2.0, 2.0, -2.0], "f32")
    body = """
      %0 = arith.remf %a, %b : tensor<3xf32>
      %1 = arith.cmpf ogt, %0, %a : tensor<3xf32>
      %r = arith.select %1, %a, %0 : tensor<3xi1>, tensor<3xf32>
    """
    assert evaluate(body, "tensor<3xf32>", numbers, others).tolist() == [1.5, -5.5, 1.0]
    bytes_ = array([-1, 1], "i8")
    widened = """
      %0 = arith.index_castui %a : tensor<2xi8> to tensor<2xindex>
      %r = arith.index_cast %0 : tensor<2xindex> to tensor<2xi32>
    """
    assert evaluate(widened, "tensor<2xi32>", bytes_).astype(np.int64).tolist() == [255, 1]


def test_call_attributes_are_kept() -> None:
    call = '%0 = func.call @f(%a) {arg_attrs = [{x.y = "z"}], no_inline, res_attrs = [{x.w}]} : (i32) -> i32'
    assert_round_trip(f"func.func @f(%a: i32) -> i32 {{\n  {call}\n  func.return %0 : i32\n}}")
    generic = '%0 = "func.call"(%a) <{arg_attrs = [{x.y}], callee = @f, no_inline}> : (i32) -> i32'
    text = f"func.func @f(%a: i32) -> i32 {{\n  {generic}\n  func.return %0 : i32\n}}"
    assert_round_trip(text)
    assert "no_inline" in print_module(parse_module(text))
