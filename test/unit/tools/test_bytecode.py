"""MLIR bytecode is read and written through jaxlib."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recompute.dialects.context import make_context
from recompute.frontends import bytecode
from recompute.frontends.bytecode import BytecodeError, bytecode_of_text, is_bytecode, text_of_bytecode
from recompute.mlir_io.parser import parse_module
from recompute.tools.recompute_check import main as check
from recompute.tools.recompute_opt import main

pytest.importorskip("jaxlib", reason="jaxlib, which reads and writes bytecode, is not installed")

STEP = """\
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x {other.tag = #other.set<>} : tensor<4xf32> loc("jit(f)/jvp(block0)/sin")
  %t = "recompute.token"(%a) : (tensor<4xf32>) -> !recompute.token
  %b = "recompute.depend"(%x, %t) : (tensor<4xf32>, !recompute.token) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}
"""


def test_bytecode_round_trips(tmp_path: Path) -> None:
    text, binary, again = (tmp_path / name for name in ("a.mlir", "a.mlirbc", "b.mlir"))
    text.write_text(STEP)
    assert main([str(text), "--emit-bytecode", "-o", str(binary)]) == 0
    assert is_bytecode(binary.read_bytes())
    assert main([str(binary), "-o", str(again)]) == 0
    assert '= loc("jit(f)/jvp(block0)/sin")' in again.read_text()
    context = make_context()
    written, read = (parse_module(text, "step.mlir", context) for text in (STEP, again.read_text()))
    assert read.is_structurally_equivalent(written)
    assert check([str(text), str(binary)]) == 0


def test_bytecode_is_written_to_standard_output(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recompute.tools.recompute_opt", "--emit-bytecode"]
    written = subprocess.run(command, input=STEP.encode(), capture_output=True, check=True).stdout
    assert "stablehlo.sine" in text_of_bytecode(written)


def test_portable_artifacts_are_read() -> None:
    from jax._src.interpreters import mlir  # pyright: ignore[reportMissingTypeStubs]
    from jaxlib.mlir.dialects import stablehlo  # pyright: ignore

    text = STEP[: STEP.index("  %t =")].replace(" {other.tag = #other.set<>}", "") + "  return %a : tensor<4xf32>\n}"
    with mlir.make_ir_context():
        artifact = stablehlo.serialize_portable_artifact_str(text, stablehlo.get_minimum_version())  # pyright: ignore
    assert parse_module(text_of_bytecode(artifact)).is_structurally_equivalent(parse_module(text))


def test_invalid_bytecode_gives_one_error_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.mlirbc"
    path.write_bytes(bytecode_of_text(STEP)[:100])
    assert main([str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{path}:1:1: error: the bytecode cannot be read: ")


def test_missing_jaxlib_error_names_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise BytecodeError(bytecode.MISSING)

    path = tmp_path / "step.mlir"
    path.write_text(STEP)
    monkeypatch.setattr(bytecode, "_bindings", missing)
    assert main([str(path), "--emit-bytecode"]) == 1
    assert "pip install 'xdsl-recompute[jax]'" in capsys.readouterr().err


@pytest.mark.parametrize("other", ["--split-input-file", "--verify-diagnostics"])
def test_plans_of_several_modules_or_of_none_are_refused(other: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--emit-plan", "plan.json", other]) == 2
    assert f"--emit-plan cannot be combined with {other}" in capsys.readouterr().err


def test_bytecode_of_several_modules_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--emit-bytecode", "--split-input-file"]) == 2
    assert "--emit-bytecode cannot be combined with --split-input-file or --target" in capsys.readouterr().err
