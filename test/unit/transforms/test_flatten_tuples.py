"""Steps that return a tuple, as PyTorch/XLA exports them: flattened, recomputed, proved equal and executed."""

from __future__ import annotations

import numpy as np
import pytest

import recompute
from recompute.dialects.stablehlo.tuples import GetTupleElementOp, TupleOp
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import function_named
from recompute.interpreters.inputs import random_inputs
from recompute.interpreters.meter import meter
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.proof.prove import ProofOptions, prove
from recompute.support.diagnostics import Refusal
from recompute.support.operations import every_operation
from recompute.test.torch_xla_step import torch_xla_step
from recompute.transforms.flatten_tuples import flatten_tuples

PIPELINE = "recompute-flatten-tuples,recompute{primal-results=0}"


def test_torch_xla_step_is_proved_and_saves_memory() -> None:
    """The result is proved, equal bit for bit, and needs less memory, by prediction and by measurement."""
    text = torch_xla_step(8)
    before, plain = parse_module(text), parse_module(text)
    assert flatten_tuples(plain) == 1
    result = recompute.rewrite(text, RecomputeOptions(pipeline=PIPELINE))
    assert result.proof is not None and result.proof.proved and result.proof.flattened_results == 1
    assert not any(isinstance(op, TupleOp | GetTupleElementOp) for op in every_operation(result.module))
    inputs = random_inputs(function_named(before), 0, "random")
    assert compare(before, result.module, inputs).equal
    peaks = [recompute.memory(module)["main"].peak_bytes for module in (plain, result.module)]
    metered = [meter(function_named(module), inputs)[1].peak_bytes for module in (plain, result.module)]
    assert metered == peaks and peaks[1] <= 0.5 * peaks[0]


def test_recomputed_step_reads_elements_without_tuples() -> None:
    """The function still returns a tuple unless flattening is requested, but elements are read without tuples."""
    result = recompute.rewrite(torch_xla_step(3), RecomputeOptions(pipeline="recompute{primal-values=%loss}"))
    assert result.proof is not None and result.proof.proved and result.proof.flattened_results == 0
    assert [type(op) for op in every_operation(result.module) if isinstance(op, TupleOp | GetTupleElementOp)] == [
        TupleOp
    ]


PAIR = "tuple<tensor<f32>, tensor<2xf32>>"


def flattened(body: str, results: str, before: str = "") -> str:
    text = f"{before}func.func @main(%a: tensor<f32>, %b: tensor<2xf32>) -> {results} {{\n{body}\n}}"
    module = parse_module(text, "f.mlir")
    flatten_tuples(module)
    module.verify()
    assert prove(parse_module(text), module, ProofOptions(flattened_results=True)).proved
    return print_module(module)


def test_nested_tuples_and_tuples_of_calls_are_flattened() -> None:
    body = f"""%t = stablehlo.custom_call @make(%a) : (tensor<f32>) -> {PAIR}
    %u = stablehlo.tuple %b, %t : tuple<tensor<2xf32>, {PAIR}>
    return %u, %a : tuple<tensor<2xf32>, {PAIR}>, tensor<f32>"""
    text = flattened(body, f"(tuple<tensor<2xf32>, {PAIR}>, tensor<f32>)")
    assert "-> (tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>)" in text
    assert "get_tuple_element %t[0]" in text and "get_tuple_element %t[1]" in text
    assert "stablehlo.tuple" not in text


@pytest.mark.parametrize(
    ("body", "results", "words"),
    [
        (
            f'%t = stablehlo.tuple %a, %b {{mhlo.sharding = "x"}} : {PAIR}\nreturn %t : {PAIR}',
            PAIR,
            "f.mlir:2:.* the operation that creates a returned tuple has attributes that would be lost",
        ),
        (
            f"%t = stablehlo.tuple %a, %b : {PAIR}\nreturn %t : {PAIR}",
            f'({PAIR} {{jax.result_info = "x"}})',
            "the function returns a tuple, and its results have attributes that would be lost",
        ),
    ],
)
def test_attributes_that_would_be_lost_prevent_flattening(body: str, results: str, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        flattened(body, results)


def test_swapped_results_are_not_proved() -> None:
    text = """func.func @main(%a: tensor<f32>) -> tuple<tensor<f32>, tensor<f32>> {
      %b = stablehlo.negate %a : tensor<f32>
      %t = stablehlo.tuple %a, %b : tuple<tensor<f32>, tensor<f32>>
      return %t : tuple<tensor<f32>, tensor<f32>>
    }"""
    after = parse_module(text)
    flatten_tuples(after)
    swapped = parse_module(print_module(after).replace("%a, %b :", "%b, %a :"))
    assert prove(parse_module(text), after, ProofOptions(flattened_results=True)).proved
    assert not prove(parse_module(text), after).proved
    assert not prove(parse_module(text), swapped, ProofOptions(flattened_results=True)).proved


@pytest.mark.parametrize(
    ("read", "is_proved"),
    [("%t[0] : (PAIR) -> tensor<f32>", True), ("%t[1] : (PAIR) -> tensor<f32>", False)],
)
def test_tuple_element_is_proved_equal_to_its_value(read: str, is_proved: bool) -> None:
    pair = "tuple<tensor<f32>, tensor<f32>>"
    before = f"""func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {{
      %t = stablehlo.tuple %a, %b : {pair}
      %r = stablehlo.get_tuple_element {read.replace("PAIR", pair)}
      return %r : tensor<f32>
    }}"""
    after = "func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {\n  return %a : tensor<f32>\n}"
    assert prove(parse_module(before), parse_module(after)).proved == is_proved
    inputs = [np.float32(1), np.float32(2)]
    assert compare(parse_module(before), parse_module(after), inputs).equal == is_proved
