"""Every behaviour of the two tables, by key: what is wanted, which test shows it, and what is missing where none does.

A test belongs to the row that its name begins with: `test_mindspore_12_gate_on_the_incoming_cotangent` to
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
Status: TypeAlias = Literal["done", "embedding", "open"]

# Rows about what happens while a framework traces or runs eagerly, which a pass over a finished step does not see.
EMBEDDING = {
    "paddle-28": "a step carries its keys as values, so a copy draws the same numbers; other numbers would be other "
    "keys, which the framework that makes the step must hand out",
}
MOST_EMBEDDED = 12

# What an open row needs from the passes.
MISSING = {
    "mindspore-33": "a switch for collectives",
    "mindspore-36": "nested region instances",
    "mindspore-40": "strict mode",
    "mindspore-42": "views between marked operations travel along",
    "paddle-02": "the second segment of three is refused a gate that is there",
    "paddle-03": "the same",
    "paddle-05": "a test, now that there are checkpoints",
    "paddle-06": "a test, now that there are checkpoints",
    "paddle-07": "a test, now that there are checkpoints",
    "paddle-08": "a test, now that there are checkpoints",
    "paddle-10": "crossing values in the report",
    "paddle-14": "a test, now that marks per result are read",
    "paddle-36": "nested region instances",
    "paddle-40": "a test, now that chains can be excluded",
    "paddle-41": "a test, now that regions can be skipped",
    "paddle-42": "planning by minimum cut",
    "paddle-44": "sinking each copy to its first reader",
    "paddle-45": "offloading",
    "paddle-46": "a test, now that regions are grouped into segments",
    "paddle-47": "operations per phase and crossing values in the report",
    "paddle-48": "casts in front of a region travel along",
}


@dataclass(frozen=True)
class Row:
    """`need`: must or define (MindSpore), parity or better (Paddle)."""

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
    """For each row the tests that are named after it, as `file.py::test`."""
    found: dict[str, list[str]] = {row.key: [] for row in ROWS}
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and (match := re.match(r"test_(mindspore|paddle)_(\d\d)_", node.name)):
                found.setdefault(f"{match[1]}-{match[2]}", []).append(f"{path.name}::{node.name}")
    return found


def status_of(row: Row, tests: Mapping[str, list[str]]) -> Status:
    if tests[row.key]:
        return "done"
    return "embedding" if row.key in EMBEDDING else "open"
