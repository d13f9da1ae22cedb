"""`chlo.scan`: its forms, values, costs and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.utils.exceptions import ParseError, VerifyException

from recompute.interpreters.executor import execute, function_named
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.proof.prove import prove
from recompute.rules.flops import flops

PROGRAM = """
func.func @main(%a: tensor<2x4xf32>, %i: tensor<2xf32>) -> (tensor<2x4xf32>, tensor<2xf32>) {
  %0:2 = chlo.scan(%a) inits (%i) dimension=1 ATTRIBUTES{
  ^bb0(%x: tensor<2xf32>, %c: tensor<2xf32>):
    %1 = stablehlo.add %x, %c : tensor<2xf32>
    %2 = stablehlo.multiply %1, %x : tensor<2xf32>
    stablehlo.return %2, %1 : tensor<2xf32>, tensor<2xf32>
  } : (tensor<2x4xf32>, tensor<2xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return %0#0, %0#1 : tensor<2x4xf32>, tensor<2xf32>
}
"""
FORWARD, REVERSE = PROGRAM.replace("ATTRIBUTES", ""), PROGRAM.replace("ATTRIBUTES", "attributes {is_reverse = true} ")
INPUT, INIT = np.arange(8, dtype=np.float32).reshape(2, 4), np.array([10, 20], np.float32)


def _run(text: str) -> list[NDArray[Any]]:
    module = parse_module(text)
    module.verify()
    return list(execute(function_named(module, "main"), [INPUT, INIT]))


@pytest.mark.parametrize(("text", "order"), [(FORWARD, [0, 1, 2, 3]), (REVERSE, [3, 2, 1, 0])])
def test_each_slice_reads_the_previous_carry(text: str, order: list[int]) -> None:
    outputs, carry = np.zeros_like(INPUT), INIT
    for index in order:
        carry = carry + INPUT[:, index]
        outputs[:, index] = carry * INPUT[:, index]
    result = _run(text)
    np.testing.assert_array_equal(result[0], outputs)
    np.testing.assert_array_equal(result[1], carry)


@pytest.mark.parametrize("text", [FORWARD, REVERSE])
def test_both_forms_are_read_as_one_operation(text: str) -> None:
    module = parse_module(text)
    printed = print_module(module)
    assert print_module(parse_module(printed)) == printed
    generic = print_module(module, generic=True)
    assert '"chlo.scan"(' in generic
    assert print_module(parse_module(generic)) == printed


def test_flops_count_the_body_once_per_slice() -> None:
    (scan,) = [op for op in parse_module(FORWARD).walk() if op.name == "chlo.scan"]
    assert flops(scan) == 4 * (2 + 2)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("dimension=1", "dimension=2", "must be non-negative and less than rank"),
        ("ATTRIBUTES", "attributes {scan_dim_size = 3 : i64} ", "an input or output has 4 slices, expected 3"),
        ("^bb0(%x: tensor<2xf32>, %c", "^bb0(%x: tensor<2xf32>, %more: tensor<2xf32>, %c", "arguments of the body"),
        (
            "stablehlo.return %2, %1 : tensor<2xf32>, tensor<2xf32>",
            "stablehlo.return %2 : tensor<2xf32>",
            "body returns",
        ),
        ("dimension=1", "dimension=0", "an argument of the body has type"),
    ],
)
def test_mismatched_scans_are_rejected(old: str, new: str, words: str) -> None:
    assert old in PROGRAM
    with pytest.raises(VerifyException, match=words):
        parse_module(PROGRAM.replace(old, new).replace("ATTRIBUTES", "")).verify()


def test_results_for_all_carries_are_required() -> None:
    text = FORWARD.replace("-> (tensor<2x4xf32>, tensor<2xf32>)\n  return", "-> ()\n  return")
    with pytest.raises(ParseError, match="there are 0 results, expected at least"):
        parse_module(text)


def test_slices_of_a_vector_are_scalars() -> None:
    text = """
    func.func @main(%a: tensor<4xf32>, %i: tensor<f32>) -> (tensor<4xf32>, tensor<f32>) {
      %0:2 = chlo.scan(%a) inits (%i) dimension=0 {
      ^bb0(%x: tensor<f32>, %c: tensor<f32>):
        %1 = stablehlo.maximum %x, %c : tensor<f32>
        stablehlo.return %1, %1 : tensor<f32>, tensor<f32>
      } : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
      return %0#0, %0#1 : tensor<4xf32>, tensor<f32>
    }
    """
    outputs, last = execute(
        function_named(parse_module(text), "main"), [np.array([1, 3, 2, 5], np.float32), INIT[0] / 5]
    )
    np.testing.assert_array_equal(outputs, [2, 3, 3, 5])
    assert last.shape == () and last == 5


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dimension=1 ", "dimension=1 attributes {is_reverse = true} "),
        ("stablehlo.multiply %1, %x", "stablehlo.multiply %1, %c"),
        ("stablehlo.return %2, %1", "stablehlo.return %1, %2"),
    ],
)
def test_proof_compares_direction_and_body(old: str, new: str) -> None:
    assert old in FORWARD
    assert prove(parse_module(FORWARD), parse_module(FORWARD)).proved
    assert not prove(parse_module(FORWARD), parse_module(FORWARD.replace(old, new))).proved
