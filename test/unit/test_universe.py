"""All passes and dialects have unique names, by which stock xDSL finds them through the entry point."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from recompute import universe
from recompute.rewriting import recompute
from recompute.universe import PASSES, RECOMPUTE_PASSES, TARGETS

ROOT = Path(__file__).resolve().parents[2]
REWRITING = frozenset({"loops", "mark", "plan", "recompute", "schedule"})
"""The passes that call the search and apply its choices; they are defined in `rewriting/`."""


@pytest.mark.parametrize("name", PASSES)
def test_pass_file_and_test_share_one_name(name: str) -> None:
    result = PASSES[name]()
    word = name.removeprefix("recompute-")
    assert result.name == name
    assert result.__name__ == f"{word.title().replace('-', '')}Pass"
    package = "rewriting" if word in REWRITING else "transforms"
    assert (ROOT / package / f"{word.replace('-', '_')}.py").is_file()
    assert (ROOT / "test" / "filecheck" / "transforms" / f"{word}.mlir").is_file()


@pytest.mark.parametrize("name", TARGETS)
def test_target_name_equals_registered_name(name: str) -> None:
    assert TARGETS[name]().name == name


def test_every_pass_file_is_registered() -> None:
    files = {path.stem for path in (ROOT / "transforms").glob("*.py")} - {"__init__"}
    assert files | REWRITING == {name.removeprefix("recompute-").replace("-", "_") for name in PASSES}
    assert not files & REWRITING


def test_passes_of_recompute_are_listed_alike_everywhere() -> None:
    pipeline = f"builtin.module({','.join(RECOMPUTE_PASSES)})"
    assert pipeline in (ROOT / "docs" / "driver.md").read_text()
    page = (ROOT / "docs" / "command_line.md").read_text()
    (sentence,) = re.findall(r"The pass `recompute` applies (.+?) in this order", page, re.DOTALL)
    assert re.findall(r"`([\w-]+)`", sentence) == list(RECOMPUTE_PASSES)
    (listed,) = re.findall(r"\n\n(take-marks .+?);", recompute.__doc__ or "", re.DOTALL)
    assert [f"recompute-{word}" for word in re.split(r"\s+->\s+", listed)] == list(RECOMPUTE_PASSES)


def test_stock_xdsl_opt_runs_our_passes() -> None:
    text = (
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {"
        " %a = stablehlo.sine %x : tensor<4xf32> func.return %a : tensor<4xf32> }"
    )
    tool = Path(sys.executable).with_name("xdsl-opt")
    completed = subprocess.run(
        [tool, "-p", "recompute-inline,recompute-verify"], input=text, capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr
    assert "stablehlo.sine" in completed.stdout


def test_plugin_omits_stablehlo_beside_xdsl_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    def file_that_tests(name: str) -> str:
        return name

    assert "stablehlo" in universe.UNIVERSE.all_dialects
    monkeypatch.setattr(universe, "distribution", file_that_tests)
    assert list(universe._dialects()) == ["recompute", "chlo", "sdy"]  # pyright: ignore[reportPrivateUsage]
