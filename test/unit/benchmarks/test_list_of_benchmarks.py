"""The table in `benchmarks/README.md` lists each benchmark, and agrees with the docstring of its module."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
PARTS = {"peers.measure_peer", "solvers.planner_graphs", "solvers.pytorch_partitioner"}
"""Programs that only other benchmarks and pages run."""
ROW = re.compile(r"^\| .* \| `([\w.]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = {name: cells for name, *cells in ROW.findall((BENCHMARKS / "README.md").read_text())}
UNITS = {"s": "second", "min": "minute", "h": "hour"}


def path_of(name: str) -> Path:
    module = BENCHMARKS / name.replace(".", "/")
    return path if (path := module.with_suffix(".py")).exists() else module / "__main__.py"


def docstring_of(name: str) -> str:
    return " ".join((ast.get_docstring(ast.parse(path_of(name).read_text())) or "").split())


def in_words(time: str) -> str:
    """Return the time with its units in words, such as `2 minutes` for `2 min`."""
    return re.sub(
        r"(\d+) (s|min|h)\b", lambda match: f"{match[1]} {UNITS[match[2]]}{'s' * (match[1] != '1')}", time.strip()
    )


def programs() -> set[str]:
    paths = (path for path in BENCHMARKS.rglob("*.py") if '__name__ == "__main__"' in path.read_text())
    return {".".join(path.relative_to(BENCHMARKS).with_suffix("").parts).removesuffix(".__main__") for path in paths}


def test_table_lists_every_benchmark() -> None:
    assert set(ROWS) == programs() - PARTS


@pytest.mark.parametrize("name", sorted(ROWS))
def test_row_agrees_with_the_docstring(name: str) -> None:
    printed, time, page = ROWS[name]
    docstring = docstring_of(name)
    assert f"python -m recompute.benchmarks.{name}" in docstring
    assert f"Time: about {in_words(time)}." in docstring
    results = docstring.partition("Results: ")[2].partition(" Time: about")[0]
    expected = Path(target[1]).name.partition("#")[0] if (target := re.search(r"\]\((.*)\)", page)) else ""
    assert results
    assert results.startswith(printed)
    assert expected in results
    assert ("printed only" in results) == (page.strip() == "printed")
