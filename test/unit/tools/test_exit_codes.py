"""The exit codes of all tools agree with the table in docs/driver.md and with the help of each tool."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from recompute.tools import recompute_check, recompute_opt, recompute_plan, recompute_run
from recompute.tools.arguments import opt_arguments

DOCS = Path(__file__).resolve().parents[3] / "docs"
STEP = """\
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x : tensor<4xf32>
  func.return %a : tensor<4xf32>
}
"""
TOOLS = {
    "opt": (recompute_opt.main, opt_arguments.argument_parser),
    "run": (recompute_run.main, recompute_run.argument_parser),
    "check": (recompute_check.main, recompute_check.argument_parser),
    "plan": (recompute_plan.main, recompute_plan.argument_parser),
}
CODES = [
    ("opt step -p cse", 0),
    ("opt --list-passes", 0),
    ("opt bad", 1),
    ("opt none", 1),
    ("opt step -p recompute", 1),
    ("opt step -p recompute{primal-results=0}", 1),
    ("opt step -p recompute{budget=8}", 1),
    ("opt step -p recompute{target=x}", 1),
    ("opt step -p recompute{segmnts=a}", 2),
    ("opt step -p no-such-pass", 2),
    ("opt step --no-such-option", 2),
    ("opt step -t explain{format=xml}", 2),
    ("run step", 0),
    ("run bad", 1),
    ("run none", 1),
    ("run step --function g", 1),
    ("run step --kind x", 2),
    ("check step step", 0),
    ("check step other", 1),
    ("check step other --expect not-proved", 0),
    ("check step step --expect not-proved", 1),
    ("check step bad", 2),
    ("check step none", 2),
    ("check step", 2),
    ("plan none --budget min", 2),
    ("plan bad --budget min", 2),
    ("plan step --budget min --sweep 2", 2),
    ("plan gradient --budget 8", 2),
    ("plan gradient --fit 1GiB", 0),
    ("plan gradient --fit 1B", 1),
]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    gradient = STEP.replace(
        "f32>\n  func",
        'f32> loc("jit(f)/jvp(b)/sin")\n  %g = stablehlo.cosine %x : tensor<4xf32> '
        'loc("jit(f)/transpose(jvp(b))/cos")\n  func',
    ).replace("return %a", "return %g")
    texts = {"step": STEP, "bad": "func.func @f(", "other": STEP.replace("sine", "cosine"), "gradient": gradient}
    for name, text in texts.items():
        (tmp_path / f"{name}.mlir").write_text(text)
    return {name: str(tmp_path / f"{name}.mlir") for name in (*texts, "none")}


@pytest.mark.parametrize(("command", "code"), CODES)
def test_exit_codes_are_as_documented(command: str, code: int, files: dict[str, str]) -> None:
    tool, *arguments = command.split()
    run: Callable[[list[str]], int] = TOOLS[tool][0]
    try:
        result: object = run([files.get(argument, argument) for argument in arguments])
    except SystemExit as error:
        result = error.code
    assert result == code


@pytest.mark.parametrize("tool", TOOLS)
def test_help_and_documentation_state_the_same_codes(tool: str) -> None:
    _, _, text = TOOLS[tool][1]().format_help().partition("Exit codes:")
    in_help = set(re.findall(r"(?:^|[;:\n])\s*(\d+)\s", f": {text}"))
    header, _, *rows = re.findall(r"^\|.*\|$", (DOCS / "driver.md").read_text().partition("## Exit codes")[2], re.M)
    column = [cell.strip() for cell in header.split("|")].index(f"`recompute-{tool}`")
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    assert in_help == {row[1] for row in cells if row[1].isdigit() and row[column]} >= {"0", "1", "2"}
