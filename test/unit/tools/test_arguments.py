"""For arguments whose type no array can have, each tool prints one located error line and no traceback."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recompute.test.excerpts import diagnostics_of
from recompute.tools.recompute_check import main as check
from recompute.tools.recompute_run import main as run

STATIC = "but the interpreter supports only static shapes"
REFUSED = [
    ("tensor<2x!quant.uniform<i8:f32, 0.1:-30>>", "numpy has no type for elements of type !quant.uniform<"),
    ("!quant.uniform<i8:f32, 0.1:-30>", "numpy has no type for elements of type !quant.uniform<"),
    ("tensor<*xf32>", f"the rank of tensor<*xf32> is unknown, {STATIC}"),
    ("memref<*xf32>", f"the rank of memref<*xf32> is unknown, {STATIC}"),
    ("tensor<2x?xf32>", f"the shape of tensor<2x?xf32> is dynamic, {STATIC}"),
    ("tensor<?xf32, #stablehlo.bounds<3>>", "the shape of tensor<?xf32, #stablehlo.bounds<3>> is dynamic"),
    ("!stablehlo.token", "numpy has no type for elements of type !stablehlo.token"),
    ("tuple<tensor<2xf32>>", "numpy has no type for elements of type tuple<tensor<2xf32>>"),
    ("tensor<2xf80>", "numpy has no type for elements of type f80"),
    ("tensor<2xcomplex<f16>>", "numpy has no type for elements of type complex<f16>"),
    ("i128", "numpy has no type for elements of type i128"),
    ("!acme.state", "numpy has no type for elements of type !acme.state"),
    ("tensor<1000000000000000xf32>", "it does not fit in memory"),
    ("tensor<100000000000x100000000000xf32>", "it does not fit in memory"),
]

FUNCTION = """
  func.func @main(%x: tensor<2xf32>, %y: TYPE) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
"""
LAYOUT = """func.func @f(%x: tensor<2xf32, #acme.layout>) -> tensor<2xf32, #acme.layout> {
  return %x : tensor<2xf32, #acme.layout>
}"""


@pytest.fixture(params=REFUSED, ids=[type_ for type_, _ in REFUSED])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Return a file with such an argument, and the expected error line."""
    type_, reason = request.param
    path = tmp_path / "f.mlir"
    path.write_text(FUNCTION.replace("TYPE", type_))
    return str(path), f"{path}:2:3: error: no input can be given for argument #1 of type {type_}: {reason}"


def test_bad_arguments_with_random_inputs_are_refused(
    program: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path, expected = program
    assert run([path]) == 1
    check_one_line(capsys, expected)
    assert check([path, path, "--execute"]) == 2
    check_one_line(capsys, expected, "proved equal: 1 result, ")


def test_bad_arguments_with_given_inputs_are_refused(
    program: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, expected = program
    inputs = tmp_path / "in.npz"
    np.savez(inputs, np.zeros(2, np.float32), np.zeros(2, np.float32))
    assert run([path, "--inputs", str(inputs)]) == 1
    if "memory" in expected:
        expected = f"{inputs}: error: input #1 is float32[2], expected float32["
    check_one_line(capsys, expected)


def check_one_line(capsys: pytest.CaptureFixture[str], expected: str, verdict: str = "") -> None:
    """Require one diagnostic, and the verdict of the proof on standard output; no output without a verdict."""
    output, error = capsys.readouterr()
    assert output.startswith(verdict) and output.count("\n") == bool(verdict)
    assert error.startswith(expected) and len(diagnostics_of(error)) == 1


def test_types_unknown_to_xdsl_are_equal_in_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(LAYOUT)
    assert check([str(path), str(path), "--execute", "--expect", "equal"]) == 0
    assert "executed: equal bit for bit" in capsys.readouterr().out


def test_operations_on_dynamic_shapes_are_not_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.mlir"
    path.write_text("""func.func @f(%x: tensor<2xf32>, %n: tensor<1xi32>) -> tensor<2xf32> {
      %a = "stablehlo.dynamic_reshape"(%x, %n) : (tensor<2xf32>, tensor<1xi32>) -> tensor<?xf32>
      return %x : tensor<2xf32> }""")
    assert run([str(path)]) == 1
    assert diagnostics_of(capsys.readouterr().err) == [
        f"{path}:2:12: error: stablehlo.dynamic_reshape cannot be executed: "
        "the shape of tensor<?xf32> is dynamic, but the interpreter supports only static shapes"
    ]
