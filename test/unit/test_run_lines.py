"""RUN lines that run in this process have the verdicts of lit, failures included; other lines are left to lit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from recompute.test.run_lines.report import THROUGH_LIT, Report, report_here, report_of, reports_of_lit
from recompute.test.run_lines.script import NotUnderstood, script_of

SUITE = Path(__file__).resolve().parents[1] / "filecheck"
PROGRAM = """
// CHECK: func.func @f
// CHECK-NEXT: stablehlo.sine
// OTHER: stablehlo.cosine
// ERROR: no gradient found
// ERROR-NOT: stablehlo
// DEFAULT: CHECK
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x : tensor<4xf32>
  func.return %a : tensor<4xf32>
}
"""
FAILING = "recompute-opt %s -p recompute"

PASS: dict[str, str] = {
    "a check": "recompute-opt %s | filecheck %s",
    "two programs in a row": "recompute-opt %s | recompute-opt | filecheck %s",
    "two commands": "recompute-opt %s && recompute-opt %s -o %t",
    "an error that is awaited": f"not {FAILING}",
    "errors into the pipe": f"not {FAILING} 2>&1 | filecheck %s --check-prefix=ERROR",
    "errors alone into the pipe": f"not {FAILING} 2>&1 > /dev/null | filecheck %s --check-prefix=ERROR",
    "errors into a file": f"not {FAILING} 2> %t\nfilecheck %s --check-prefix=ERROR --input-file %t",
    "output into a file": "recompute-opt %s > %t\nfilecheck %s --input-file %t",
    "more output into a file": "recompute-opt %s > %t\nrecompute-opt %s >>%t\nnot diff %s %t",
    "the same output twice": "recompute-opt %s > %t\nrecompute-opt %s -o %t.again\ndiff %t %t.again",
    "a line that goes on": "recompute-opt \\\n%s | filecheck %s",
    "the proof": "recompute-opt %s -p cse -o %t\nrecompute-check %s %t\nrecompute-run %t",
}
# What fails, and words of what is told then.
FAIL: dict[str, tuple[str, str]] = {
    "a check that does not hold": ("recompute-opt %s | filecheck %s --check-prefix=OTHER", 'match "stablehlo.cosine"'),
    "a check of nothing": ("recompute-opt %s > /dev/null | filecheck %s", "filecheck error"),
    "a prefix that is nowhere": ("recompute-opt %s | filecheck %s --check-prefix=NOWHERE", "NOWHERE"),
    "an error": (FAILING, "error: no gradient found"),
    "an error in front of a pipe": (f"{FAILING} 2>&1 | filecheck %s --check-prefix=ERROR", "exit code 1"),
    "an error in the second line": (f"recompute-opt %s\n{FAILING}", "error: no gradient found"),
    "an error in the second command": (f"recompute-opt %s && {FAILING}", "error: no gradient found"),
    "an error in the first command": (f"{FAILING} && recompute-opt %s", "error: no gradient found"),
    "no error where one is awaited": ("not recompute-opt %s", "exit code 1"),
    "no error in front of a pipe": ("not recompute-opt %s | filecheck %s", "exit code 1"),
    "errors that go nowhere": (f"not {FAILING} > /dev/null 2>&1 | filecheck %s --check-prefix=ERROR", "is empty"),
    "errors that are not piped": (f"not {FAILING} | filecheck %s --check-prefix=ERROR", "error: no gradient found"),
    "a file that is emptied": (
        "recompute-opt %s > %t\nnot recompute-opt %t.no > %t\nfilecheck %s --input-file %t",
        "is empty",
    ),
    "other output": ("recompute-opt %s > %t\ndiff %s %t", "differ"),
    "quotes and percent signs": ("recompute-opt %s -p 'cse | not %%s %d'", "cse | not %s %d"),
    "a missing file": ("recompute-opt %t", "error: cannot read the file"),
    "a wrong option": ("recompute-opt %s --nonsense", "exit code 2"),
    "an unequal program": ("recompute-check %s %s.no", "error: cannot read the file"),
}
# Those on which shells differ most.
LIT_TOO = (
    "errors alone into the pipe",
    "more output into a file",
    "an error in front of a pipe",
    "errors that go nowhere",
)
OTHERS = (
    *("echo x | filecheck %s", "recompute-opt %s; recompute-opt %s", "recompute-opt %s || recompute-opt %s"),
    *("recompute-opt < %s", "recompute-opt %s &> %t", "env A=b recompute-opt %s", "recompute-opt *.mlir", "not"),
    *("recompute-opt %{s:basename}", "recompute-opt %T", "recompute-opt %s |", "not not recompute-opt %s"),
    *("not --crash recompute-opt %s", "diff -u %s %s", "recompute-opt %s 3>&1"),
)


def written(folder: Path, name: str, lines: str) -> Path:
    path = folder / f"{name.replace(' ', '-')}.mlir"
    runs = "".join(f"// RUN: {line}\n" for line in lines.splitlines())
    path.write_text(runs + PROGRAM)
    return path


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of our lit configuration, for scripts in files of their own."""
    folder = tmp_path_factory.mktemp("lit") / "test" / "filecheck"
    folder.mkdir(parents=True)
    shutil.copy(SUITE / "lit.cfg.py", folder)
    return folder


@pytest.mark.parametrize("name", PASS)
def test_passing_script_is_reported_as_passed(name: str, tmp_path: Path) -> None:
    assert report_here(written(tmp_path, name, PASS[name])) == Report("PASS", "")


@pytest.mark.parametrize("name", FAIL)
def test_failing_script_is_reported_with_its_line(name: str, tmp_path: Path) -> None:
    lines, words = FAIL[name]
    report = report_here(written(tmp_path, name, lines))
    assert report is not None and report.code == "FAIL"
    assert report.output.startswith(f"RUN: {lines.splitlines()[-1]}\nexit code ")
    assert words in report.output


@pytest.mark.slow
def test_lit_gives_the_same_verdict(suite: Path) -> None:
    scripts = PASS | {name: lines for name, (lines, _) in FAIL.items()}
    files = {name: written(suite, name, scripts[name]) for name in LIT_TOO}
    result = reports_of_lit(list(files.values()), suite)
    assert {name: result[file].code for name, file in files.items()} == {
        name: "PASS" if name in PASS else "FAIL" for name in LIT_TOO
    }


def test_unhandled_exception_gives_exit_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError("seen")

    monkeypatch.setattr("recompute.tools.recompute_opt.run", broken)
    report = report_here(written(tmp_path, "a", "recompute-opt %s"))
    assert report is not None and "exit code 1\n" in report.output and "ZeroDivisionError: seen" in report.output


@pytest.mark.parametrize("line", OTHERS)
def test_unsupported_run_line_is_left_to_lit(line: str, tmp_path: Path) -> None:
    file = written(tmp_path, "a", line)
    with pytest.raises(NotUnderstood):
        script_of(file, tmp_path)
    assert report_here(file) is None


@pytest.mark.parametrize("word", ["XFAIL: *", "REQUIRES: nothing", "UNSUPPORTED: true", "DEFINE: %{x} = y", "END."])
def test_other_lit_keywords_are_left_to_lit(word: str, tmp_path: Path) -> None:
    file = written(tmp_path, "a", "recompute-opt %s")
    assert report_here(file) is not None
    file.write_text(f"// {word}\n{file.read_text()}")
    assert report_here(file) is None


def test_file_without_run_lines_is_left_to_lit(tmp_path: Path) -> None:
    assert report_here(written(tmp_path, "a", "")) is None


def test_lit_runs_unsupported_files(suite: Path) -> None:
    file = written(suite, "fails", FAILING)
    assert report_of(file, suite).code == "FAIL"
    file.write_text(f"// XFAIL: *\n{file.read_text()}")
    assert report_of(file, suite).code == "XFAIL"


def test_some_files_are_left_to_lit() -> None:
    assert all((SUITE / name).exists() for name in THROUGH_LIT)
