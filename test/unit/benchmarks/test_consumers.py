"""A part of `benchmarks/consumers`: rewrites of unusual steps are proved, compiled by XLA, and have equal bits."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="the benchmark runs JAX")
pytest.importorskip("optax", reason="the benchmark has steps with optax")

from recompute.benchmarks.consumers.all_cases import CASES
from recompute.benchmarks.consumers.consumers_page import tables
from recompute.benchmarks.consumers.step_checks import BUG, REFUSED, WRITTEN, CheckRow
from recompute.benchmarks.harness.markdown import insert_tables

PAGE = Path(__file__).resolve().parents[3] / "docs" / "measured" / "consumers.md"
OPTIONS = ("plain", "inline")
# By step, in the order of the options.
EXPECTED = {
    "blocks_around_a_map_round_trip": (WRITTEN, WRITTEN),
    "psum": (WRITTEN, WRITTEN),
    "on_the_host": (WRITTEN, WRITTEN),
    "ordered_io": (WRITTEN, WRITTEN),
    "callbacks_in_scan": (WRITTEN, WRITTEN),
    "functions_with_odd_names": (WRITTEN, WRITTEN),
    "metadata_of_xla": (WRITTEN, WRITTEN),
    "exported_inside": (WRITTEN, WRITTEN),
    "composite": (WRITTEN, WRITTEN),
}


@pytest.fixture(scope="module")
def rows() -> list[CheckRow]:
    """Return the rows of the benchmark, run in another process, which has two devices and may be aborted by XLA."""
    command = [sys.executable, "-m", "recompute.benchmarks.consumers", "--json", *EXPECTED, "--options", *OPTIONS]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return [CheckRow(**json.loads(line)) for line in completed.stdout.splitlines()]


@pytest.mark.slow
def test_each_step_is_written_or_refused_as_expected(rows: list[CheckRow]) -> None:
    entries = {name: tuple(row.outcome for row in rows if row.step == name) for name in EXPECTED}
    assert entries == EXPECTED


@pytest.mark.slow
def test_written_modules_are_proved_compiled_and_equal(rows: list[CheckRow]) -> None:
    written = [row for row in rows if row.outcome != REFUSED]
    assert {row.xla for row in written} == {"ok"}
    assert {row.proof for row in written} <= {"1", "2", "text"}
    assert {row.numpy for row in written if row.step in ("on_the_host", "functions_with_odd_names")} == {"equal"}
    assert not any(row.is_bug for row in rows)


WITHOUT_RESERVED_NAMES = """
import recompute.dialects.reserved_names as names
names.RESERVED_NAMES = ()
import runpy, sys
sys.argv = ["consumers", "blocks_around_a_map_round_trip", "--json", "--options", "inline"]
runpy.run_module("recompute.benchmarks.consumers", run_name="__main__")
"""


@pytest.mark.slow
def test_xla_aborts_where_no_name_is_reserved() -> None:
    """Without reserved names XLA aborts, and the benchmark notices it."""
    completed = subprocess.run(
        [sys.executable, "-c", WITHOUT_RESERVED_NAMES], capture_output=True, text=True, check=False
    )
    assert completed.returncode not in (0, 1) and "Check failed" in completed.stderr, (
        completed.stdout + completed.stderr
    )


GOOD = CheckRow("step", "plain", WRITTEN, "", "1", "equal", "ok", "0", "0")


def test_good_row_is_not_a_bug() -> None:
    assert not GOOD.is_bug
    assert not replace(GOOD, proof="2", numpy="cannot").is_bug
    assert not CheckRow("step", "plain", REFUSED, "a.py:1:2: error: no gradient found").is_bug


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": BUG},
        {"proof": "not proved: result #0 of @main differs"},
        {"numpy": "different: result #0 [0]"},
        {"xla": "failed: INTERNAL"},
        {"far": True},
    ],
)
def test_row_that_breaks_a_promise_is_a_bug(change: dict[str, Any]) -> None:
    assert CheckRow(**{**GOOD.as_data(), **change}).is_bug


def test_tables_have_a_line_for_each_step() -> None:
    refused = CheckRow("other", "plain", REFUSED, "a.py:1:2: error: no gradient found")
    result = tables([GOOD, replace(GOOD, options="auto", proof="2", ours="1.5 / 2.0e-08"), refused])
    assert result["consumers"].splitlines()[2:] == [
        "| step | written | 1, 2 | equal | ok | 1.5 / 2.0e-08 | 0 |",
        "| other | refused | - | - | - | - | - |",
    ]
    assert result["reasons"].splitlines()[2:] == ["| other | refused | no gradient found |"]
    with pytest.raises(AssertionError, match="the page lacks the line"):
        insert_tables("# Page\n", result)


def test_page_has_a_line_for_each_step() -> None:
    table = PAGE.read_text().split("<!-- consumers -->\n", 1)[1].partition("<!-- end -->")[0]
    assert [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]] == list(CASES)
