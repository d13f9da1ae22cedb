"""Diagnostics on operations whose location is only a name state their place in the text and the name."""

from __future__ import annotations

from pathlib import Path

import pytest

from recompute.dialects.cloning import clone_of
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import position_of
from recompute.support.operations import name_of
from recompute.tools import recompute_check, recompute_opt

STEP = """\
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = stablehlo.sine %x : tensor<8xf32> loc("layer0")
  %b = stablehlo.tanh %a : tensor<8xf32> loc("layer1")
  %c = stablehlo.tanh %b : tensor<8xf32> loc(#layer)
  %d = stablehlo.tanh %c : tensor<8xf32> loc("layer3"("model.py":7:5))
  func.return %d : tensor<8xf32> loc(unknown)
} loc("jit(f)")
#layer = loc("layer2")
"""
POSITIONS = ["step.mlir:2:8", "step.mlir:3:8", "step.mlir:4:8", "model.py:7:5", "step.mlir:6:3"]


def test_clones_keep_position_and_name() -> None:
    module = parse_module(STEP, "step.mlir")
    for parsed in (module, clone_of(module)):
        inside = [op for op in parsed.walk() if name_of(op) not in ("builtin.module", "func.func")]
        assert [position_of(op) for op in inside] == POSITIONS


def test_errors_state_position_and_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text(STEP.replace("tanh %a", "tanh %a {recompute.recomput = true}"))
    assert recompute_opt.main(["step.mlir"]) == 1
    error, line, caret = capsys.readouterr().err.splitlines()
    assert error.startswith("step.mlir:3:8: error: unknown attribute 'recompute.recomput'")
    assert error.endswith('(at "layer1")') and "tanh %a" in line and caret == " " * 7 + "^"


def test_differences_state_position_and_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("before.mlir").write_text(STEP)
    Path("after.mlir").write_text(STEP.replace("tanh %a", "sine %a"))
    assert recompute_check.main(["before.mlir", "after.mlir"]) == 1
    places = 'before stablehlo.tanh at before.mlir:3:8 ("layer1"), after stablehlo.sine at after.mlir:3:8 ("layer1")'
    assert places in capsys.readouterr().out
