"""Runs the lit suite with pytest: every `.mlir` file below `test/filecheck` is one test.

lit runs once, in parallel, over all files that were collected; each test then reports what lit said about its file.
With pytest-xdist (`--dist loadgroup`) the lit suite is the work of one process, and so is each other file, since the
tests of a file share what is slow to make.
"""

# pytest does not type `from_parent`.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        group = SUITE.name if isinstance(item, LitItem) else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))


class LitFile(pytest.File):
    @override
    def collect(self) -> Iterator[pytest.Item]:
        yield LitItem.from_parent(self, name="lit")


class LitItem(pytest.Item):
    @override
    def runtest(self) -> None:
        report = reports_of(self.session)[self.path]
        if report["code"] == "UNSUPPORTED":
            pytest.skip(report["output"])
        if report["code"] not in PASSED:
            pytest.fail(f"lit: {report['code']}\n{report['output']}", pytrace=False)

    @override
    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, str(self.path.relative_to(SUITE))


def reports_of(session: pytest.Session) -> Reports:
    """What lit says about every collected file; lit runs when the first of them is asked for."""
    if REPORTS not in session.stash:
        session.stash[REPORTS] = run_lit([item.path for item in session.items if isinstance(item, LitItem)])
    return session.stash[REPORTS]


def run_lit(files: list[Path]) -> Reports:
    """Run lit over `files` and return its report (code and output) for each of them."""
    lit = Path(sys.executable).with_name("lit")
    with TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        command = [lit, "--quiet", "--ignore-fail", "--output", results, *files]
        done = subprocess.run(command, capture_output=True, text=True)
        if not results.exists():
            pytest.fail(f"lit did not run:\n{done.stdout}{done.stderr}", pytrace=False)
        tests = json.loads(results.read_text())["tests"]
    return {SUITE / test["name"].split(" :: ", 1)[1]: test for test in tests}
