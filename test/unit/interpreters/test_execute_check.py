"""Comparison of two programs by the bits of their results, and the inputs for it."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.inputs import INPUT_KINDS, load_inputs, random_inputs
from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import prove
from recompute.support.diagnostics import Refusal

from .evaluate import array

BEFORE = """func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.tanh %x : tensor<4xf32>
  %b = stablehlo.negate %a : tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}"""
BY_SUBTRACTION = BEFORE.replace(
    "%b = stablehlo.negate %a",
    "%z = stablehlo.subtract %a, %a : tensor<4xf32>\n  %b = stablehlo.subtract %z, %a",
)


def test_equal_programs_have_equal_bits() -> None:
    proof = compare(parse_module(BEFORE), parse_module(BEFORE), [array([1, -0.0, np.nan, np.inf], "f32")])
    assert (proof.equal, proof.results, proof.nan_results) == (True, 2, 2)


def test_the_sign_of_a_zero_is_a_difference() -> None:
    before, after = parse_module(BEFORE, "a.mlir"), parse_module(BY_SUBTRACTION, "b.mlir")
    assert compare(before, after, [array([1, 2, 3, 4], "f32")]).equal
    proof = compare(before, after, [array([1, 0, 0, 2], "f32")])
    assert str(proof.difference) == (
        "result #1 [1]: before -0.0 (0x80000000), after 0.0 (0x00000000); 2 elements differ; "
        "first new value: stablehlo.subtract at b.mlir:3:8"
    )


def test_the_payload_of_a_nan_is_a_difference() -> None:
    text = """func.func @main() -> tensor<f32> {
  %a = stablehlo.constant dense<0x7FC00000> : tensor<f32>
  return %a : tensor<f32>
}"""
    proof = compare(parse_module(text), parse_module(text.replace("C00000>", "C00001>"), "b.mlir"), [])
    assert str(proof.difference) == (
        "result #0 []: before nan (0x7fc00000), after nan (0x7fc00001); 1 element differs; "
        "first new value: stablehlo.constant at b.mlir:2:8"
    )


def test_swapped_results_have_no_new_value() -> None:
    after = parse_module(BEFORE.replace("return %a, %b", "return %b, %a"))
    proof = compare(parse_module(BEFORE), after, [array([1, 2, 3, 4], "f32")])
    assert proof.difference is not None and proof.difference.operation is None
    assert str(proof.difference).endswith("; 4 elements differ; all computed values occur in both programs")


def test_other_signatures_are_refused() -> None:
    with pytest.raises(Refusal, match="the functions have different types"):
        compare(parse_module(BEFORE), parse_module(BEFORE.replace("4xf32", "5xf32")), [])


ALL = parse_module("""func.func @main(%a: tensor<400xf32>, %b: tensor<9xi32>, %c: tensor<2xui32>, %d: tensor<400xbf16>,
    %e: tensor<50xi1>, %f: tensor<100xi8>, %g: tensor<3xcomplex<f32>>, %h: tensor<20xi4>) {
  return
}""")


@pytest.mark.parametrize("kind", INPUT_KINDS)
def test_inputs_fit_and_repeat(kind: str) -> None:
    function = function_named(ALL)
    inputs = random_inputs(function, 3, kind)  # pyright: ignore[reportArgumentType]
    again = random_inputs(function, 3, kind)  # pyright: ignore[reportArgumentType]
    other = random_inputs(function, 4, kind)  # pyright: ignore[reportArgumentType]
    assert [actual.dtype.name for actual in inputs] == "float32 int32 uint32 bfloat16 bool int8 complex64 int4".split()
    assert [actual.tobytes() for actual in inputs] == [item.tobytes() for item in again]
    assert inputs[0].tobytes() != other[0].tobytes()


def test_input_kinds_hold_expected_values() -> None:
    random, positive, adversarial = (random_inputs(function_named(ALL), 0, kind) for kind in INPUT_KINDS)
    assert np.isfinite(random[0]).all() and (random[0] < 0).any() and (positive[0] >= 0).all()
    assert random[1].min() >= 0 and random[1].max() < 32 and random[2].max() > 1000
    for index in (0, 3):
        floats = adversarial[index].astype(np.float32)
        zeros = floats[floats == 0]
        assert np.isnan(floats).any() and np.isinf(floats).any()
        assert np.signbit(zeros).any() and not np.signbit(zeros).all()
        assert ((floats != 0) & (np.abs(floats) < 1e-37)).any()
    assert {-128, 127} <= set(adversarial[5].tolist())
    with pytest.raises(ValueError, match="unknown kind 'odd'; expected one of random, positive, adversarial"):
        random_inputs(function_named(ALL), 0, "odd")  # pyright: ignore[reportArgumentType]


def test_inputs_of_types_numpy_cannot_store_are_loaded(tmp_path: Path) -> None:
    function = function_named(parse_module("func.func @main(%a: tensor<2xbf16>, %b: tensor<i32>) { return }"))
    values = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    for stored in (values, values.view(np.uint16)):
        np.savez(tmp_path / "in.npz", stored, np.int32(7))
        first, second = load_inputs(str(tmp_path / "in.npz"), function)
        assert first.dtype == values.dtype and first.tolist() == values.tolist() and second == 7
    np.savez(tmp_path / "in.npz", values)
    with pytest.raises(ValueError, match="the file contains 1 array, expected 2, one for each argument"):
        load_inputs(str(tmp_path / "in.npz"), function)


@pytest.mark.parametrize(
    "body",
    [
        "%0 = stablehlo.optimization_barrier %a : tensor<f32>\n %s = stablehlo.add %0, %b : tensor<f32>",
        "%0 = stablehlo.custom_call @recompute.save(%a) : (tensor<f32>) -> tensor<f32>\n"
        " %s = stablehlo.add %0, %b : tensor<f32>",
        "%0 = stablehlo.divide %a, %b : tensor<f32>\n %s = stablehlo.add %a, %b : tensor<f32>",
    ],
    ids=["a barrier", "a mark", "a dead operation"],
)
def test_no_op_in_reducer_body_changes_no_bits(body: str) -> None:
    """A barrier in the body of a reduction changes no bit: numpy's pairwise sum applies in either case."""
    text = """
func.func public @main(%x: tensor<1000xf32>, %z: tensor<f32>) -> tensor<f32> {{
  %r = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<1000xf32>, tensor<f32>) -> tensor<f32>
   reducer(%a: tensor<f32>, %b: tensor<f32>) {{
    {body}
    stablehlo.return %s : tensor<f32>
  }}
  func.return %r : tensor<f32>
}}
"""
    plain, other = (
        parse_module(text.format(body=item), "reduce.mlir")
        for item in ("%s = stablehlo.add %a, %b : tensor<f32>", body)
    )
    draw = np.random.default_rng(0)
    assert prove(plain, other)
    assert compare(plain, other, [draw.normal(0, 1, 1000).astype(np.float32), np.float32(0.5)]).equal


def test_regions_that_select_and_scatter_capture_values() -> None:
    text = """
func.func public @main(%x: tensor<4xf32>, %s: tensor<2xf32>, %k: tensor<f32>) -> tensor<4xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.select_and_scatter"(%x, %s, %z) <{
    window_dimensions = array<i64: 2>, window_strides = array<i64: 2>, padding = dense<0> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.multiply %b, %k : tensor<f32>
    %q = stablehlo.add %a, %p : tensor<f32>
    stablehlo.return %q : tensor<f32>
  }) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
"""
    inputs = [np.array(item, np.float32) for item in ([1, 2, 4, 3], [10, 20], 0.5)]
    (result,) = execute(function_named(parse_module(text), "main"), inputs)
    assert np.array_equal(result, [0, 5, 10, 0])


def test_barrier_of_an_argument_computes_no_new_value() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = stablehlo.optimization_barrier %x : tensor<4xf32>
  %a = stablehlo.tanh %b : tensor<4xf32>
  return %a : tensor<4xf32>
}"""
    lines = text.replace("tanh %b", "tanh %x").split("\n")
    without = "\n".join([lines[0], *lines[2:]])
    before, after = parse_module(without), parse_module(text.replace("tanh", "cosine"), "b.mlir")
    assert str(compare(before, after, [array([1, 2, 3, 4], "f32")]).difference).endswith(
        "first new value: stablehlo.cosine at b.mlir:3:8"
    )
