"""Completeness of the tables of behaviours, and agreement with the page about them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from recompute.test.conformance.rows import ELSEWHERE, MISSING, MOST_ELSEWHERE, ROWS, named_after_rows, status_of

ROOT = Path(__file__).resolve().parents[2]


def test_each_row_appears_once() -> None:
    assert [sum(row.system == system for row in ROWS) for system in ("mindspore", "paddle")] == [45, 50]
    assert len({row.behaviour for row in ROWS}) == 95
    assert {row.need for row in ROWS} <= {"must", "define", "parity", "better"}


def test_every_test_has_a_row() -> None:
    assert named_after_rows().keys() == {row.key for row in ROWS}


def test_only_listed_rows_belong_elsewhere() -> None:
    assert len(ELSEWHERE) <= MOST_ELSEWHERE
    assert all(reason for reason in ELSEWHERE.values())
    assert not any(named_after_rows()[key] for key in ELSEWHERE)


def test_exactly_open_rows_list_missing_features() -> None:
    tests = named_after_rows()
    assert {row.key for row in ROWS if status_of(row, tests) == "open"} == MISSING.keys()


def test_page_is_up_to_date() -> None:
    result = subprocess.run(
        [sys.executable, "-c", "import generate_conformance as g; print(g.conformance(), end='')"],
        cwd=ROOT / "docs",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert (ROOT / "docs" / "measured" / "conformance.md").read_text() == result, (
        "run python docs/generate_conformance.py"
    )
