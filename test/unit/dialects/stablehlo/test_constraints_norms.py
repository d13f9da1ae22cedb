"""Constraints of batch norms, map, linear systems, random numbers, tuples, composites and quantization, each violated
separately."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import VerifyException

from recompute.mlir_io.parser import parse_module
from recompute.test.mlir_judge import Judge
from recompute.test.unit.dialects.stablehlo.constraints import Template

ROW = "tensor<8xf32>"
NORM = "<{epsilon = {epsilon}, feature_index = {index} : i64}>"
COMMON = {"epsilon": "0.1 : f32", "index": "1", "operand": "tensor<4x8xf32>", "scale": ROW}
TRAINING = Template(
    f'%r:3 = "stablehlo.batch_norm_training"(%0, %1, %2) {NORM} : ({{operand}}, {{scale}}, {{offset}})'
    " -> ({output}, {mean}, {variance})",
    {**COMMON, "offset": ROW, "output": "tensor<4x8xf32>", "mean": ROW, "variance": ROW},
    ("operand", "scale", "offset"),
)
INFERENCE = Template(
    f'%r = "stablehlo.batch_norm_inference"(%0, %1, %2, %3, %4) {NORM}'
    " : ({operand}, {scale}, {offset}, {mean}, {variance}) -> {output}",
    {**COMMON, "offset": ROW, "mean": ROW, "variance": ROW, "output": "tensor<4x8xf32>"},
    ("operand", "scale", "offset", "mean", "variance"),
)
GRAD = Template(
    f'%r:3 = "stablehlo.batch_norm_grad"(%0, %1, %2, %3, %4) {NORM}'
    " : ({operand}, {scale}, {mean}, {variance}, {grad}) -> ({output}, {grad_scale}, {offset})",
    {
        **COMMON,
        "mean": ROW,
        "variance": ROW,
        "grad": "tensor<4x8xf32>",
        "output": "tensor<4x8xf32>",
        "grad_scale": ROW,
        "offset": ROW,
    },
    ("operand", "scale", "mean", "variance", "grad"),
)
SHORT, INTEGERS = "tensor<7xf32>", "tensor<8xi32>"


@pytest.mark.parametrize(
    ("template", "label", "changed", "words"),
    [
        *(
            (template, "C1", {"index": "2"}, "must be non-negative and less than rank 2")
            for template in (TRAINING, INFERENCE, GRAD)
        ),
        *((template, "C2", {"scale": "tensor<8xf64>"}, "type f64, expected f32") for template in (TRAINING, INFERENCE)),
        *(
            (template, "I1", {"scale": INTEGERS}, "not defined for elements of type i32")
            for template in (TRAINING, GRAD)
        ),
        (TRAINING, "epsilon", {"epsilon": "0.1 : f64"}, "epsilon has type f64, expected f32"),
        (TRAINING, "C3", {"scale": SHORT}, r"scale has shape \[7\], expected \[8\]"),
        (TRAINING, "C4", {"offset": SHORT}, r"offset has shape \[7\], expected \[8\]"),
        (TRAINING, "C5", {"mean": SHORT}, r"batch_mean has shape \[7\], expected \[8\]"),
        (TRAINING, "C6", {"variance": SHORT}, r"batch_var has shape \[7\], expected \[8\]"),
        (TRAINING, "C7", {"output": "tensor<8x4xf32>"}, r"output has shape \[8, 4\], expected \[4, 8\]"),
        (INFERENCE, "C3", {"scale": SHORT}, "scale has shape"),
        (INFERENCE, "C4", {"offset": SHORT}, "offset has shape"),
        (INFERENCE, "C5", {"mean": SHORT}, "mean has shape"),
        (INFERENCE, "C6", {"variance": SHORT}, "variance has shape"),
        (INFERENCE, "C7", {"output": "tensor<8x4xf32>"}, "result has shape"),
        (GRAD, "C2", {"grad": "tensor<4x8xf64>"}, "type f64, expected f32"),
        (GRAD, "C3", {"grad": "tensor<8x4xf32>"}, "grad_output has shape"),
        (GRAD, "C3", {"output": "tensor<8x4xf32>"}, "grad_operand has shape"),
        (GRAD, "C4", {"mean": SHORT}, "mean has shape"),
        (GRAD, "C4", {"grad_scale": SHORT}, "grad_scale has shape"),
        (
            GRAD,
            "C5",
            dict.fromkeys(("scale", "mean", "variance", "grad_scale", "offset"), SHORT),
            r"scale has shape \[7\], expected \[8\]",
        ),
    ],
)
def test_batch_norm_constraints_are_checked(
    template: Template, label: str, changed: dict[str, str], words: str
) -> None:
    template.refuse(label, words, **changed)


@pytest.mark.parametrize("template", [TRAINING, INFERENCE, GRAD])
def test_valid_batch_norms_are_accepted(template: Template, judge: Judge) -> None:
    template.accept(judge)


MAP = Template(
    '%r = "stablehlo.map"(%0, %1) <{dimensions = array<i64: {dimensions}>}> ({\n^bb0({body}):\n'
    "  stablehlo.return {returned}\n}) : ({a}, {b}) -> {result}",
    {
        "dimensions": "0, 1",
        "body": "%x: tensor<f32>, %y: tensor<i32>",
        "returned": "%x : tensor<f32>",
        "a": "tensor<2x3xf32>",
        "b": "tensor<2x3xi32>",
        "result": "tensor<2x3xf32>",
    },
    ("a", "b"),
)
SOLVE = Template(
    '%r = "stablehlo.triangular_solve"(%0, %1) <{left_side = {left}, lower = true, unit_diagonal = false,'
    " transpose_a = #stablehlo<transpose {transpose}>}> : ({a}, {b}) -> {result}",
    {
        "left": "true",
        "transpose": "NO_TRANSPOSE",
        "a": "tensor<2x4x4xf32>",
        "b": "tensor<2x4x3xf32>",
        "result": "tensor<2x4x3xf32>",
    },
    ("a", "b"),
)
RNG = Template(
    "{constant}%r = stablehlo.rng %0, %1, {name}, distribution = {kind} : ({a}, {b}, {shape}) -> {result}",
    {
        "constant": "",
        "name": "%2",
        "kind": "UNIFORM",
        "a": "tensor<f32>",
        "b": "tensor<f32>",
        "shape": "tensor<2xi64>",
        "result": "tensor<2x3xf32>",
    },
    ("a", "b", "shape"),
)
CONSTANT = {"constant": "%n = stablehlo.constant dense<[2, 4]> : tensor<2xi64>\n  ", "name": "%n"}
ELEMENT = Template(
    "%r = stablehlo.get_tuple_element %0[{index}] : ({tuple}) -> {result}",
    {"index": "1", "tuple": "tuple<tensor<f32>, tensor<i32>>", "result": "tensor<i32>"},
    ("tuple",),
)
TUPLE = Template(
    '%r = "stablehlo.tuple"(%0) : ({value}) -> {result}',
    {"value": "tensor<f32>", "result": "tuple<tensor<f32>>"},
    ("value",),
)


@pytest.mark.parametrize(
    ("template", "label", "changed", "words"),
    [
        (MAP, "C1", {"b": "tensor<2x4xi32>"}, r"an input has shape \[2, 4\], expected \[2, 3\]"),
        (MAP, "C3", {"dimensions": "1, 0"}, r"the dimensions are \[1, 0\], expected \[0, 1\]"),
        (MAP, "C4", {"body": "%x: tensor<f32>"}, "the number of arguments of the region is 1, expected 2"),
        (MAP, "C4", {"returned": "%y : tensor<i32>"}, r"type tensor<i32>, expected tensor<f32>"),
        (SOLVE, "C1", {"b": "tensor<2x4x3xf64>"}, "elements of type f64, expected f32"),
        (SOLVE, "C2", {"a": "tensor<4x4xf32>"}, "ranks 2 and 3, expected equal ranks"),
        (SOLVE, "C3", {"a": "tensor<2x4x5xf32>"}, "a matrix has shape"),
        (SOLVE, "C3", {"a": "tensor<3x4x4xf32>"}, "the batch of b has shape"),
        (SOLVE, "C3", {"left": "false"}, r"a side of b has shape \[3\], expected \[4\]"),
        (SOLVE, "C4", {"result": "tensor<2x3x4xf32>"}, "the result has type"),
        (SOLVE, "I6", {"transpose": "TRANSPOSE_INVALID"}, "expected NO_TRANSPOSE, TRANSPOSE or ADJOINT"),
        (RNG, "I1", {"a": "tensor<1xf32>"}, r"a bound has shape \[1\], expected \[\]"),
        (RNG, "C1", {"b": "tensor<f64>"}, "elements of type f64, expected f32"),
        (
            RNG,
            "C2",
            {"kind": "NORMAL", "a": "tensor<i32>", "b": "tensor<i32>", "result": "tensor<2x3xi32>"},
            "a normal distribution requires floats, found i32",
        ),
        (RNG, "C3", CONSTANT, r"shape \[2, 3\], expected \[2, 4\]"),
        (RNG, "C3", {"shape": "tensor<3xi64>"}, "there are 3 elements of shape, expected 2"),
        (ELEMENT, "C1", {"index": "2"}, "index 2 is out of range for tuple<"),
        (ELEMENT, "C2", {"result": "tensor<f32>"}, "type tensor<f32>, expected tensor<i32>"),
        (TUPLE, "C1", {"result": "tuple<tensor<i32>>"}, "type tensor<i32>, expected tensor<f32>"),
        (TUPLE, "C1", {"result": "tuple<>"}, "the number of types of the tuple is 0, expected 1"),
    ],
)
def test_constraints_of_other_operations_are_checked(
    template: Template, label: str, changed: dict[str, str], words: str
) -> None:
    template.refuse(label, words, **changed)


@pytest.mark.parametrize(
    ("template", "changed"),
    [(MAP, {}), (SOLVE, {"left": "false", "b": "tensor<2x3x4xf32>", "result": "tensor<2x3x4xf32>"}), (TUPLE, {})],
)
def test_other_valid_operations_are_accepted(template: Template, changed: dict[str, str], judge: Judge) -> None:
    template.accept(judge, **changed)


QUANTIZED = "!quant.uniform<i8:f32, 0.5:3>"


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (f"quantize %0 : (tensor<4xi32>) -> tensor<4x{QUANTIZED}>", "^I1: .* expected a float or quantized type"),
        (f"quantize %0 : (tensor<4xf32>) -> tensor<5x{QUANTIZED}>", r"^C1: .* shape \[5\], expected \[4\]"),
        (f"quantize %0 : (tensor<4xf64>) -> tensor<4x{QUANTIZED}>", "^C2: .* type f32, expected f64"),
        ("quantize %0 : (tensor<4xf32>) -> tensor<4xi8>", "^C2: .* expected a quantized type"),
        ("dequantize %0 : (tensor<4xi8>) -> tensor<4xf32>", "^I1: .* expected a quantized type"),
        (f"dequantize %0 : (tensor<4x{QUANTIZED}>) -> tensor<5xf32>", r"^C1: .* shape \[5\], expected \[4\]"),
        (f"dequantize %0 : (tensor<4x{QUANTIZED}>) -> tensor<4xf64>", "^C2: .* type f64, expected f32"),
    ],
)
def test_quantization_constraints_are_checked(operation: str, words: str) -> None:
    type_ = operation.partition("(")[2].partition(")")[0]
    program = f"func.func @f(%0: {type_}) {{\n  %r = stablehlo.uniform_{operation}\n  return\n}}"
    with pytest.raises(VerifyException, match=words):
        parse_module(program).verify()


COMPOSITE = """func.func @f(%0: tensor<2xf32>) {
  %r = stablehlo.composite "acme.twice" %0 {decomposition = @twice} : (tensor<2xf32>) -> tensor<2xf32>
  return
}
func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %r = stablehlo.add %x, %x : tensor<2xf32>
  return %r : tensor<2xf32>
}"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("acme.twice", "twice", "^C1: invalid composite name 'twice'"),
        ("= @twice", "= @thrice", "^C2: the decomposition is @thrice"),
        (": (tensor<2xf32>)", ": (tensor<3xf32>)", "^C3: .* type tensor<3xf32>, expected tensor<2xf32>"),
        (
            "-> tensor<2xf32>\n  return",
            "-> tensor<3xf32>\n  return",
            "^C4: .* type tensor<3xf32>, expected tensor<2xf32>",
        ),
    ],
)
def test_composite_constraints_are_checked(old: str, new: str, words: str) -> None:
    parse_module(COMPOSITE).verify()
    changed = COMPOSITE.replace(old, new, 1)
    if "C3" in words:
        changed = changed.replace("%0: tensor<2xf32>", "%0: tensor<3xf32>")
    with pytest.raises(VerifyException, match=words):
        parse_module(changed).verify()
