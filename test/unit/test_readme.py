"""What the README and the reference say is what the tools do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from recompute.tools.recompute_opt import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
CONCEPTS = (ROOT / "docs" / "concepts.md").read_text()
BEFORE, AFTER = re.findall(r"```mlir\n(.*?)```", README, re.DOTALL)
(PASSES,) = re.findall(r"After `recompute-opt -p (\S+)`", README)


def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "step.mlir"
    source.write_text(BEFORE)
    assert main([str(source), "-p", PASSES]) == 0
    captured = capsys.readouterr()
    assert captured.out == AFTER
    assert (
        "segment 'block1' is not recomputed: its values are needed as soon as the backward pass begins" in captured.err
    )
    assert main([str(source), "-p", "recompute"]) == 0
    assert "recompute.depend" not in (lowered := capsys.readouterr().out)
    assert "stablehlo.optimization_barrier" in lowered


def test_the_structured_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    section = CONCEPTS.partition("## Segments and gradient regions")[2].partition("\n## ")[0]
    before, after = re.findall(r"```mlir\n(.*?)```", section, re.DOTALL)
    (passes,) = re.findall(r"`recompute-opt -p (\S+)`", section)
    source = tmp_path / "step.mlir"
    source.write_text(before)
    assert main([str(source), "-p", passes]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (after, "")


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / link).exists(), link


def test_the_reference_is_fresh() -> None:
    made = subprocess.run(
        [sys.executable, "-c", "import generate_reference as g; print(g.reference(), end='')"],
        cwd=ROOT / "docs",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert (ROOT / "docs" / "reference.md").read_text() == made, "run python docs/generate_reference.py"
