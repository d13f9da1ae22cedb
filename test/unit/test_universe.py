"""Unique names for all passes and dialects, which stock xDSL finds through the entry point."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recompute import universe
from recompute.universe import PASSES, TARGETS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_its_file_and_its_test_have_one_name(name: str) -> None:
    found = PASSES[name]()
    word = name.removeprefix("recompute-")
    assert found.name == name
    assert found.__name__ == f"{word.title().replace('-', '')}Pass"
    assert (ROOT / "transforms" / f"{word.replace('-', '_')}.py").is_file()
    assert (ROOT / "test" / "filecheck" / "transforms" / f"{word}.mlir").is_file()


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_has_the_name_that_it_is_found_by(name: str) -> None:
    assert TARGETS[name]().name == name


def test_every_pass_file_is_registered() -> None:
    files = {path.stem for path in (ROOT / "transforms").glob("*.py")} - {"__init__"}
    assert files == {name.removeprefix("recompute-").replace("-", "_") for name in PASSES}


def test_stock_xdsl_opt_runs_our_passes() -> None:
    text = (
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {"
        " %a = stablehlo.sine %x : tensor<4xf32> func.return %a : tensor<4xf32> }"
    )
    tool = Path(sys.executable).with_name("xdsl-opt")
    done = subprocess.run([tool, "-p", "recompute-inline,recompute-verify"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "stablehlo.sine" in done.stdout


def test_next_to_xdsl_jax_the_plugin_leaves_its_stablehlo_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> str:
        return name

    assert "stablehlo" in universe.UNIVERSE.all_dialects
    monkeypatch.setattr(universe, "distribution", found)
    assert list(universe._dialects()) == ["recompute", "chlo", "sdy"]  # pyright: ignore[reportPrivateUsage]
