"""Runs the lit suite with pytest: every `.mlir` file below `test/filecheck` is one test.

lit runs once, in parallel, over all files that were collected; each test then reports what lit said about its file.
With pytest-xdist, whose processes share the files, each runs lit on the files that it gets.
"""

# pytest does not type `from_parent`.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from typing_extensions import override

SUITE = Path(__file__).resolve().parent / "filecheck"
PASSED = ("PASS", "XFAIL")

Reports = dict[Path, dict[str, str]]
REPORTS = pytest.StashKey[Reports]()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".mlir" and file_path.is_relative_to(SUITE):
        return LitFile.from_parent(parent, path=file_path)
    return None


class LitFile(pytest.File):
    @override
    def collect(self) -> Iterator[pytest.Item]:
        yield LitItem.from_parent(self, name="lit")


class LitItem(pytest.Item):
    @override
    def runtest(self) -> None:
        report = reports_of(self)[self.path]
        if report["code"] == "UNSUPPORTED":
            pytest.skip(report["output"])
        if report["code"] not in PASSED:
            pytest.fail(f"lit: {report['code']}\n{report['output']}", pytrace=False)

    @override
    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, str(self.path.relative_to(SUITE))


def reports_of(asked: LitItem) -> Reports:
    """What lit says about every collected file, the one that is asked for at least; lit runs when it is the first."""
    session = asked.session
    if "PYTEST_XDIST_WORKER" in os.environ:
        return run_lit([asked.path])
    if REPORTS not in session.stash:
        session.stash[REPORTS] = run_lit([item.path for item in session.items if isinstance(item, LitItem)])
    return session.stash[REPORTS]


def run_lit(files: list[Path]) -> Reports:
    """Run lit over `files` and return its report (code and output) for each of them."""
    lit = Path(sys.executable).with_name("lit")
    with TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        command = [lit, "--quiet", "--ignore-fail", "--skip-test-time-recording", "--output", results, *files]
        done = subprocess.run(command, capture_output=True, text=True)
        if not results.exists():
            pytest.fail(f"lit did not run:\n{done.stdout}{done.stderr}", pytrace=False)
        tests = json.loads(results.read_text())["tests"]
    return {SUITE / test["name"].split(" :: ", 1)[1]: test for test in tests}
