"""mlir-opt reads our dialect as IRDL, and every output of the lit suite in generic form."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path
from shutil import which

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from recompute.dialects.context import make_context
from recompute.dialects.recompute import RECOMPUTE, DependOp, TokenOp
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.tools.help.irdl import irdl_of
from recompute.tools.recompute_opt import main

SUITE = Path(__file__).resolve().parents[2] / "filecheck"
FILES = sorted(path for path in SUITE.rglob("*.mlir") if "invalid" not in path.name and path.parent.name != "tools")
TOOL = next(filter(None, map(which, ("mlir-opt-19", "mlir-opt"))), None)
needs_mlir_opt = pytest.mark.skipif(TOOL is None, reason="mlir-opt is not installed (Debian: mlir-19-tools)")
_RUN = re.compile(r"// RUN: (recompute-opt %s[^|>&]*?)(?: \d)?\s*(?=[|>&]|$)", re.MULTILINE)

FLAT = """\
func.func @f(%x: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %t = "recompute.token"(%g) : (tensor<4xf32>) -> !recompute.token
  %d:2 = "recompute.depend"(%x, %g, %t) {recompute.copy = 1 : i64} : (tensor<4xf32>, tensor<4xf32>, !recompute.token) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %d#0 : tensor<4xf32>
}
"""  # noqa: E501


def mlir_opt(text: str, *options: str) -> subprocess.CompletedProcess[str]:
    assert TOOL is not None
    command = [TOOL, "--allow-unregistered-dialect", *options]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@pytest.fixture
def irdl(tmp_path: Path) -> Path:
    path = tmp_path / "recompute.irdl.mlir"
    path.write_text(irdl_of(RECOMPUTE))
    return path


def test_irdl_has_every_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--emit-irdl"]) == 0
    text = capsys.readouterr().out
    assert text == irdl_of(RECOMPUTE)
    assert re.findall(r"irdl.operation @(\w+)", text) == [op.name.split(".")[1] for op in RECOMPUTE.operations]
    assert "%1 = irdl.base @types::@recompute::@token" in text
    # An operand and a result of any type, then the token.
    assert "irdl.operands(variadic %0, %1)\n      irdl.results(variadic %0)" in text


@needs_mlir_opt
def test_mlir_opt_reads_our_dialect(irdl: Path) -> None:
    result = mlir_opt(FLAT, f"--irdl-file={irdl}")
    assert result.returncode == 0, result.stderr
    assert print_module(parse_module(result.stdout), generic=True).count("recompute.depend") == 1


@needs_mlir_opt
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("!recompute.token", "i32", "expected base type 'recompute.token' but got 'builtin.integer'"),
        ('recompute.token"(%g) : (tensor<4xf32>)', 'recompute.token"() : ()', None),
        ("recompute.depend", "recompute.dependent", "unregistered operation 'recompute.dependent'"),
    ],
)
def test_mlir_opt_verifies_our_dialect(irdl: Path, old: str, new: str, words: str | None) -> None:
    result = mlir_opt(FLAT.replace(old, new), f"--irdl-file={irdl}")
    assert (result.returncode == 0) == (words is None), result.stderr
    assert (words or "") in result.stderr


def commands(file: Path) -> list[list[str]]:
    """Return the distinct calls of recompute-opt in the file, without redirections of standard error."""
    splits = [shlex.split(match[1].replace("%s", str(file))) for match in _RUN.finditer(file.read_text())]
    usable = [words[1:] for words in splits if "-t" not in words and "-o" not in words and "%t" not in " ".join(words)]
    return list(map(shlex.split, dict.fromkeys(map(shlex.join, usable))))


def outputs(file: Path) -> list[str]:
    texts = list[str]()
    for arguments in commands(file):
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(io.StringIO()):
            status = main([*arguments, "--print-op-generic", "--no-print-debuginfo"])
        if status == 0 and "--verify-diagnostics" not in arguments:
            texts.extend(stream.getvalue().split("// -----\n"))
    return texts


def fits_irdl(module: ModuleOp) -> bool:
    """Return whether IRDL can express the operations: no region that requires a terminator, and lists of one type."""
    return all(_fits_irdl(op) for op in module.walk())


def _fits_irdl(op: Operation) -> bool:
    if isinstance(op, TokenOp):
        return len({gate.type for gate in op.gates}) <= 1
    if isinstance(op, DependOp):
        return len({value.type for value in op.values}) <= 1
    return not op.name.startswith("recompute.")


@needs_mlir_opt
@pytest.mark.slow("/")
@pytest.mark.parametrize("file", FILES, ids=[f"{path.parent.name}/{path.stem}" for path in FILES])
def test_mlir_opt_verifies_and_prints_every_output(file: Path, irdl: Path) -> None:
    for text in outputs(file):
        context = make_context()
        module = parse_module(text, "output.mlir", context)
        options = [f"--irdl-file={irdl}"] if "recompute." in text and fits_irdl(module) else []
        result = mlir_opt(text, "--mlir-print-op-generic", *options)
        assert result.returncode == 0, f"{result.stderr}\n{text}"
        again = mlir_opt(result.stdout, "--mlir-print-op-generic", *options)
        assert again.stdout == result.stdout
        assert parse_module(result.stdout, "mlir-opt.mlir", context).is_structurally_equivalent(module)
