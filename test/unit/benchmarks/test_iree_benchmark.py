"""The benchmark in IREE: commands, peaks and bars, with programs that stand for IREE's."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the benchmark runs JAX")

COMPILE = """#!/bin/sh
for last; do :; done
for word; do
  case $word in
    *.mlir) program=$word ;;
  esac
done
if grep -q BAD "$program"; then
  echo "f.mlir:1:1: error: bad program" >&2
  exit 1
fi
cp "$program" "$last"
"""
# The result is the input, and the peaks are those that IREE prints.
RUN = """#!/bin/sh
for word; do
  case $word in
    --input=*) from=${word#*@} ;;
    --output=*) cp "$from" "${word#*@}" ;;
  esac
done
echo "  HOST_LOCAL:           12B peak /           12B allocated /           12B freed /            0B live" >&2
echo "DEVICE_LOCAL:          400B peak /         4000B allocated /         4000B freed /            0B live" >&2
"""


INSTALLED = which("iree-compile", path=Path(sys.executable).parent) or which("iree-compile")


@pytest.fixture(scope="module")
def benchmark() -> Any:
    return import_module("recompute.benchmarks.interoperability.iree")


@pytest.fixture
def tools(benchmark: Any, tmp_path: Path) -> Any:
    for name, text in (("iree-compile", COMPILE), ("iree-run-module", RUN)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return benchmark.Tools.in_folder(str(tmp_path))


def test_peak_is_the_sum_of_both_memories(benchmark: Any, tools: Any) -> None:
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    ran = benchmark.run_in_iree(tools, "GOOD", [value], [value])
    np.testing.assert_array_equal(ran.results[0], value)
    assert ran.peak_bytes == 412


def test_program_rejected_by_iree_has_no_peak(benchmark: Any, tools: Any) -> None:
    with pytest.raises(benchmark.NotRun, match=r"iree-compile: f.mlir:1:1: error: bad program"):
        benchmark.run_in_iree(tools, "BAD", [], [])


def test_missing_tools_are_named(benchmark: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"pip install '\.\[iree\]'"):
        benchmark.Tools.in_folder(str(tmp_path))


def test_types_are_spelled_as_iree_expects(benchmark: Any) -> None:
    types = [benchmark._type(np.zeros(shape, dtype)) for shape, dtype in (((2, 3), "f4"), ((), "u4"), ((4,), "?"))]
    assert types == ["2x3xf32", "i32", "4xi1"]


ROW = {
    "name": "mlp",
    "plain_bytes": 1000,
    "ours_bytes": 640,
    "fixed_bytes": 100,
    "xla_ratio": 0.5,
    "recomputed": 0.0,
    "in_xla": 0.0,
    "xla": 2.0,
    "numpy": None,
}


@pytest.mark.parametrize(
    ("changed", "bars"),
    [
        ({}, []),
        ({"ours_bytes": 641}, ["the temporaries are 0.601 × the plain ones, but 0.500 × in XLA"]),
        ({"ours_bytes": 1000, "xla_ratio": 0.7}, []),
        ({"ours_bytes": 1030, "xla_ratio": 0.7}, ["the peak is 1.030 × the plain peak, above the limit of 1.02"]),
        ({"recomputed": 2.0}, []),
        ({"recomputed": 41.0, "in_xla": 3.0}, ["the distance is 41 units of rounding, but 3 in XLA"]),
    ],
)
def test_each_bar_can_be_missed(benchmark: Any, changed: dict[str, Any], bars: list[str]) -> None:
    assert benchmark.IreeRow(**{**ROW, **changed}).missed() == bars


def test_each_row_has_a_cell_for_each_heading(benchmark: Any) -> None:
    cells = benchmark.IreeRow(**ROW).cells()
    assert len(cells) == len(benchmark.HEADER)
    assert cells[:7] == ["mlp", "1,000", "640", "100", "0.640", "0.600", "0.500"]
    assert cells[-1] == "not executed"


@pytest.mark.skipif(INSTALLED is None, reason="IREE is not installed: python -m pip install '.[iree]'")
def test_examples_meet_the_bars_in_iree(benchmark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["chain", "mlp20", "tied"]) == 0, capsys.readouterr().err
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert len(rows) == 3
    for row in rows:
        plain, recomputed = (int(cell.replace(",", "")) for cell in row[1:3])
        assert recomputed < 0.6 * plain
