"""Messages name the options of the interface that the user called."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import recompute
from recompute.driver.verification import verified
from recompute.options.selection import Selection
from recompute.proof.verdicts.verdict import Proof
from recompute.support.interface import command_line, interface_wording, option
from recompute.test.examples import FOLDER
from recompute.tools.recompute_opt import main

ROOT = Path(__file__).resolve().parents[2]
CHAIN = FOLDER / "chain.small.mlir"
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
CALLED_FROM_PYTHON = [
    *("analysis", "driver", "frontends", "interpreters", "mlir_io", "options", "rewriting", "planning", "proof"),
    *("rules", "search", "support", "transforms", "dialects"),
]
OF_OTHER_TOOLS = {
    "--mlir-print-op-generic",
    "--mlir-elide-elementsattrs-if-larger",
    "--mlir-elide-resource-strings-if-larger",
}


def test_option_names_follow_the_interface() -> None:
    assert (option("primal-results"), interface_wording("--flag", "flag=True")) == ("primal_results", "flag=True")
    with command_line():
        assert (option("primal-results"), interface_wording("--flag", "flag=True")) == ("primal-results", "--flag")
    assert option("primal-results") == "primal_results"


def test_error_without_proof_names_the_option_of_the_interface(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> Proof:
        return Proof(proved=False, reason="a reason")

    monkeypatch.setattr(verified, "prove", fails)
    with pytest.raises(recompute.NotProved, match=r"^nothing is returned: .*\(proof=False returns it anyway\)$"):
        recompute.rewrite(CHAIN.read_text())
    assert main([str(CHAIN), "-p", "recompute"]) == 1
    assert (
        "nothing is written: the result is not proved equal to the input: a reason (--no-proof writes it anyway)"
        in (capsys.readouterr().err)
    )


def test_errors_name_options_of_the_interface(capsys: pytest.CaptureFixture[str]) -> None:
    options = recompute.RecomputeOptions(Selection(primal_results=(9,)))
    with pytest.raises(recompute.Refusal, match="primal_results=9 is out of range: the function has 2 results"):
        recompute.rewrite(CHAIN.read_text(), options)
    assert main([str(CHAIN), "-p", "recompute{primal-results=9}"]) == 1
    assert "primal-results=9 is out of range: the function has 2 results, numbered from 0" in capsys.readouterr().err


def test_error_on_unproved_loops_names_the_option() -> None:
    with pytest.raises(ValueError, match=r"disable the proof \(proof=False\)"):
        recompute.rewrite(CHAIN.read_text(), recompute.RecomputeOptions(loops="binomial(4)"))


def test_messages_outside_tools_name_no_flags() -> None:
    """Outside the tools, strings with a flag are arguments of `interface_wording` or docstrings."""
    result = dict[str, set[str]]()
    for package in CALLED_FROM_PYTHON:
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text())
            allowed = {id(node) for call in ast.walk(tree) if _is_call(call) for node in ast.walk(call)}
            allowed |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in allowed]
            flags = {flag for node in strings if isinstance(node.value, str) for flag in FLAG.findall(node.value)}
            if flags := flags - OF_OTHER_TOOLS:
                result[path.relative_to(ROOT).as_posix()] = flags
    assert result == {}


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "interface_wording"
