"""Result of each lit file, from its RUN lines in this process or from lit itself."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from .execute import failure
from .script import NotUnderstood

# lit itself runs these, so that the installed commands and its own configuration are tested.
THROUGH_LIT = ("tools/console-scripts.mlir", "transforms/inline-invalid.mlir", "transforms/mark-invalid.mlir")


@dataclass(frozen=True)
class Report:
    """Result of a file. `code`: one of lit's, such as PASS, FAIL, XFAIL, UNSUPPORTED or UNRESOLVED."""

    code: str
    output: str

    @property
    def is_good(self) -> bool:
        return self.code in ("PASS", "XFAIL")


def report_of(file: Path, suite: Path) -> Report:
    here = None if str(file.relative_to(suite)) in THROUGH_LIT else report_here(file)
    return here or reports_of_lit([file], suite)[file]


def report_here(file: Path) -> Report | None:
    """Run a file in this process; return None if lit itself has to run it."""
    try:
        result = failure(file)
    except NotUnderstood:
        return None
    return Report("PASS", "") if result is None else Report("FAIL", result)


def reports_of_lit(files: list[Path], suite: Path) -> dict[Path, Report]:
    """Run lit in parallel on files of a suite."""
    lit = Path(sys.executable).with_name("lit")
    with TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        command = [lit, "--quiet", "--ignore-fail", "--skip-test-time-recording", "--output", results, *files]
        completed = subprocess.run(command, capture_output=True, text=True)
        if not results.exists():
            raise RuntimeError(f"lit did not run:\n{completed.stdout}{completed.stderr}")
        tests = json.loads(results.read_text())["tests"]
    return {suite / test["name"].split(" :: ", 1)[1]: Report(test["code"], test["output"]) for test in tests}
