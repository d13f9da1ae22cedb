"""The snippets of docs/embedding.md, run as the page describes."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from recompute.rules import registrations_undone
from recompute.test.examples import FOLDER

PAGE = Path(__file__).resolve().parents[2] / "docs" / "embedding.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
(ACME,) = re.findall(r"```mlir\n(.*?)```", PAGE.read_text(), re.DOTALL)
T, SEGMENT = "tensor<256xf32>", 'recompute.segment = "block0"'


def step(swish: str, swish_grad: str) -> str:
    """Return a step with four operations in one segment, each of which the backward pass reads."""
    forward = [
        f'%f{i + 1} = "{swish}"(%f{i}) {{recompute.phase = "primal", {SEGMENT}}} : ({T}) -> {T}' for i in range(4)
    ]
    backward = [
        f'%g{i - 1} = "{swish_grad}"(%g{i}, %f{i}) {{recompute.phase = "gradient"}} : ({T}, {T}) -> {T}'
        for i in range(4, 0, -1)
    ]
    lines = [
        *forward,
        f'%y = "stablehlo.negate"(%f4) {{recompute.phase = "primal"}} : ({T}) -> {T}',
        f'%g4 = "stablehlo.multiply"(%ct, %y) {{recompute.phase = "gradient"}} : ({T}, {T}) -> {T}',
        *backward,
        f"func.return %y, %g0 : {T}, {T}",
    ]
    return "\n".join([f"func.func @main(%f0: {T}, %ct: {T}) -> ({T}, {T}) {{", *lines, "}"])


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_page_snippets_run(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text((FOLDER / "mlp.small.mlir").read_text())
    Path("acme.mlir").write_text(ACME)
    Path("snippet.py").write_text(SNIPPETS[number])
    with registrations_undone():
        runpy.run_path("snippet.py")
    message = capsys.readouterr().out
    expected = ("bytes, ", "", "copies; proved: True", "measured: unchanged: ", "recompute.copy = 1")[number]
    assert expected in message


def test_page_commands_run(tmp_path: Path) -> None:
    (tmp_path / "step.mlir").write_text(step("stablehlo.tanh", "stablehlo.multiply"))
    scripts = Path(sys.executable).parent
    rewriting, checking = (shlex.split(line) for line in COMMANDS[0].splitlines())
    subprocess.run([scripts / rewriting[0], *rewriting[1:]], cwd=tmp_path, check=True)
    checked = [scripts / checking[0], *checking[1:]]
    completed = subprocess.run(checked, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert completed.stdout.startswith("proved equal")
    assert "recompute.copy" in (tmp_path / "less_memory.mlir").read_text()


def test_stock_xdsl_opt_ends_with_the_error_as_the_page_says(tmp_path: Path) -> None:
    source = tmp_path / "step.mlir"
    source.write_text(step("stablehlo.tanh", "stablehlo.multiply").replace("recompute.segment", "recompute.segmnet", 1))
    command = [str(Path(sys.executable).parent / "xdsl-opt"), str(source), "-p", "recompute{target=none}"]
    error = (
        "@main (stablehlo.tanh %f1): error: unknown attribute 'recompute.segmnet'; did you mean 'recompute.segment'?"
    )
    failed = subprocess.run(command, capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1] == f"recompute.support.diagnostics.Refusal: {error}"
    printed = subprocess.run([*command, "--verify-diagnostics"], capture_output=True, text=True)
    assert (printed.returncode, printed.stdout, printed.stderr) == (0, f"{error}\n", "")
