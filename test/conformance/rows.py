"""Behaviours in both tables by key: the requirement, the tests that cover it, and what is missing without a test.

A test belongs to the row with which its name begins: `test_mindspore_12_gate_on_the_incoming_cotangent` belongs to
`mindspore-12`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from recompute.test.conformance.rows_mindspore import MINDSPORE
from recompute.test.conformance.rows_paddle import PADDLE

HERE = Path(__file__).resolve().parent
Status: TypeAlias = Literal["done", "elsewhere", "open"]

# Rows that are no matter of marks and copies, and where they belong.
ELSEWHERE = {
    "paddle-42": "the planner: it chooses by cost and bytes, with minimum cuts too; marks, policies and patterns "
    "say today what is never recomputed (`test_paddle_40_data_flow_patterns_keep_operations`)",
}
MOST_ELSEWHERE = 12

# What an open row needs from the passes.
MISSING: dict[str, str] = {}


@dataclass(frozen=True)
class Row:
    """Behaviour of the tables. `need`: must or define (MindSpore), parity or better (Paddle)."""

    key: str
    behaviour: str
    need: str

    @property
    def system(self) -> str:
        return self.key.partition("-")[0]


def _rows(system: str, text: str) -> list[Row]:
    lines = [line.rpartition(" | ") for line in text.strip().splitlines()]
    return [Row(f"{system}-{number:02}", behaviour, need) for number, (behaviour, _, need) in enumerate(lines, start=1)]


ROWS = (*_rows("mindspore", MINDSPORE), *_rows("paddle", PADDLE))


def named_after_rows() -> Mapping[str, list[str]]:
    """Return for each row the tests that are named after it, as `file.py::test`."""
    entries: dict[str, list[str]] = {row.key: [] for row in ROWS}
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and (match := re.match(r"test_(mindspore|paddle)_(\d\d)_", node.name)):
                entries.setdefault(f"{match[1]}-{match[2]}", []).append(f"{path.name}::{node.name}")
    return entries


def status_of(row: Row, tests: Mapping[str, list[str]]) -> Status:
    if tests[row.key]:
        return "done"
    return "elsewhere" if row.key in ELSEWHERE else "open"
