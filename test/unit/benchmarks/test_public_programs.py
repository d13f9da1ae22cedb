"""The benchmark of public programs counts a folder with one program of each kind correctly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recompute.benchmarks.interoperability.expectations import agree
from recompute.benchmarks.interoperability.public_programs import measure

GOOD = """
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %a, %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""
LABELLED = """
func.func @f(%a: tensor<2xf32>) -> tensor<3xf32> {
  // expected-error@+1 {{does not match}}
  %0 = stablehlo.reshape %a : (tensor<2xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""
UNLABELLED = """
func.func @f(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<f32> {
  // expected-error@+1 {{contracting dimension sizes must match}}
  %0 = stablehlo.dot %a, %b : (tensor<2xf32>, tensor<3xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
"""
SYNTAX = """
// expected-error@+1 {{unknown type}}
func.func private @f(tensor<2xf31>)
"""
OF_A_PASS = GOOD.replace("  %0", "  // expected-error@+1 {{not supported by the pass}}\n  %0")
EXECUTED = """
func.func @main() {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.add %0, %0 : tensor<2xf32>
  check.expect_eq_const %1, dense<[2.0, VALUE]> : tensor<2xf32>
  check.expect_almost_eq %1, %1 : tensor<2xf32>
  func.return
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    parts = GOOD, LABELLED, UNLABELLED, SYNTAX, OF_A_PASS
    (folder / "parts.mlir").write_text("// -----\n".join(parts))
    for name, value in (("right", "4.0"), ("wrong", "5.0")):
        (folder / f"{name}.mlir").write_text(EXECUTED.replace("VALUE", value))
    return folder


def test_each_kind_of_program_is_counted_once(folder: Path) -> None:
    counts = measure(folder, ["parts.mlir"]).counts
    assert counts == {
        "good": 1,
        "read as written": 1,
        "read as written, printed the same": 1,
        "read in generic form": 1,
        "read in generic form, printed the same": 1,
        "bad": 3,
        "refused": 3,
        "refused with a label": 1,
        "refused without a label": 1,
        "refused as syntax": 1,
        "annotated with an error, read by jaxlib": 1,
    }


def test_programs_of_other_dialects_are_not_counted_as_good(folder: Path) -> None:
    counts = measure(folder, ["parts.mlir"], dialects=frozenset({"builtin", "func"})).counts
    assert (counts["good"], counts["uses other dialects"]) == (0, 1)


def test_expectations_are_compared(folder: Path) -> None:
    right = measure(folder, ["right.mlir"], with_checks=True)
    assert (right.counts["expectations"], right.counts["as expected"]) == (2, 2)
    wrong = measure(folder, ["wrong.mlir"], with_checks=True)
    assert (wrong.counts["as expected"], wrong.counts["WRONG VALUE"]) == (1, 1)
    (line,) = [line for line in wrong.lines if line.startswith("WRONG VALUE")]
    assert line.startswith("WRONG VALUE: wrong.mlir#0: eq_const: ")


def test_values_agree_to_the_tolerance_of_their_expectation() -> None:
    first, near = np.array([1.0], np.float32), np.array([1.0 + 2**-22], np.float32)
    assert not agree("eq", first, near, 1)
    assert agree("almost_eq", first, near, 1)
    assert agree("close", first, near, 3)
    assert not agree("close", first, near, 1)
    assert not agree("almost_eq", np.array([1]), np.array([2]), 1)


def test_resource_numbers_are_not_compared(tmp_path: Path) -> None:
    program = """
func.func @f() -> tensor<2xf32> {
  %0 = stablehlo.constant dense_resource<weights> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
{-# dialect_resources: { builtin: { weights: "0x0400000000000000000000C0" } } #-}
"""
    (tmp_path / "resources.mlir").write_text("// -----\n".join([program, program]))
    counts = measure(tmp_path, ["resources.mlir"]).counts
    assert counts["read as written, printed the same"] == counts["read in generic form, printed the same"] == 2
