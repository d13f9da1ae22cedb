"""Runs the lit suite with pytest: every `.mlir` file below `test/filecheck` is one test.

Its RUN lines are run in this process, which has imported the tools already. lit itself runs a few files, so that the
console scripts and its configuration are tested, and those that ask for more than is understood here.
"""

# pytest does not type `from_parent`.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from typing_extensions import override

from recompute.test.run_lines.report import report_of

SUITE = Path(__file__).resolve().parent / "filecheck"
# Modules are made of cycles and are shared among tests: to look through them again and again takes an eighth of the time.
RARE_COLLECTIONS = (500_000, 20, 100)


def pytest_configure() -> None:
    gc.set_threshold(*RARE_COLLECTIONS)


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
        report = report_of(self.path, SUITE)
        if report.code == "UNSUPPORTED":
            pytest.skip(report.output)
        if not report.is_good:
            pytest.fail(f"lit: {report.code}\n{report.output}", pytrace=False)

    @override
    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, str(self.path.relative_to(SUITE))
