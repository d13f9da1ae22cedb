"""The configuration of pytest, which also runs the lit suite: every `.mlir` file below `test/filecheck` is one test.

The RUN lines run in this process, which has already imported the tools. lit itself runs a few files, which test the
console scripts and the configuration of lit, and the files that need features that are not implemented here.

With pytest-xdist, `scheduling.py` determines which tests share a process. Tests with the marker `slow` run only with
`--whole`, or if they are named.
"""

# pytest does not type `from_parent`.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from recompute.test.examples import CONTAINED
from recompute.test.run_lines.report import report_of
from recompute.test.scheduling import in_order, part_of

SUITE = Path(__file__).resolve().parent / "filecheck"
# Modules are made of cycles and stay, for other tests to share: to look through all of them often takes long.
RARE_COLLECTIONS = (3_000_000, 20, 100)


def pytest_configure() -> None:
    # No test reads or writes the user's cache, nor do the processes that tests start.
    os.environ["RECOMPUTE_CACHE_DIR"] = ""
    gc.set_threshold(*RARE_COLLECTIONS)


def pytest_collection_finish() -> None:
    # The imported modules and the tests stay until the end.
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="run the slow tests, too")


def _is_slow(item: pytest.Item) -> bool:
    """Return whether the marker `slow` applies to the case.

    The arguments of the marker, if there are any, are substrings of the names of the slow cases.
    """
    case = item.name.partition("[")[2]
    if case.startswith(CONTAINED):
        return True
    return any(
        not marker.args or any(word in f"[{case}" for word in marker.args) for marker in item.iter_markers("slow")
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = any("::" in argument for argument in config.args)
    left_out = [] if named or config.option.whole else [item for item in items if _is_slow(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    if "PYTEST_XDIST_WORKER" in os.environ:
        items[:] = [items[at] for at in in_order([item.nodeid for item in items])]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Distribute parts of the suite instead of files, in the order of collection, for `--dist loadfile`."""
    from xdist.scheduler import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]

    class Parts(LoadScopeScheduling):
        @override
        def _split_scope(self, nodeid: str) -> str:
            return part_of(nodeid)

    if config.option.dist != "loadfile":
        return None
    config.option.loadscopereorder = False
    return Parts(config, log)


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
