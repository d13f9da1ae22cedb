"""Write docs/measured/conformance.md from the rows and the tests in test/conformance.

    python docs/generate_conformance.py

A test compares the file with the output of this script.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from recompute.test.conformance.rows import ELSEWHERE, MISSING, ROWS, Row, named_after_rows, status_of

OUTPUT = Path(__file__).with_name("measured") / "conformance.md"
TITLES = {"mindspore": "MindSpore", "paddle": "Paddle"}
HEAD = """# Conformance

This page lists the measured behaviour of recomputation in MindSpore 2.10.0 and Paddle 3.3.1. For each behaviour, it
names the test which shows that this project behaves in the same way or better. The page is generated from
`test/conformance` by `docs/generate_conformance.py`; do not edit it.

The column "need" classifies the behaviour of these systems. "must" and "parity" denote behaviour that this project
matches, "better" denotes behaviour that falls short of a user's expectation, and "define" denotes behaviour that these
systems leave undefined. `make conformance` runs both systems and this project on the same models.
"""


def conformance() -> str:
    return "\n".join([HEAD, *summary(), *(line for system in TITLES for line in table(system)), ""])


def summary() -> Iterator[str]:
    tests = named_after_rows()
    yield "| | rows | done | belongs elsewhere | open |\n|---|---|---|---|---|"
    for system, title in TITLES.items():
        rows = [row for row in ROWS if row.system == system]
        count = Counter(status_of(row, tests) for row in rows)
        yield f"| {title} | {len(rows)} | {count['done']} | {count['elsewhere']} | {count['open']} |"
    yield ""


def table(system: str) -> Iterator[str]:
    tests = named_after_rows()
    yield f"## {TITLES[system]}\n"
    yield "| row | behaviour | need | status |\n|---|---|---|---|"
    for row in ROWS:
        if row.system == system:
            yield f"| {row.key} | {row.behaviour} | {row.need} | {status(row, tests)} |"
    yield ""


def status(row: Row, tests: Mapping[str, list[str]]) -> str:
    match status_of(row, tests):
        case "done":
            return ", ".join(f"`{name.partition('::')[2]}`" for name in tests[row.key])
        case "elsewhere":
            return f"belongs to {ELSEWHERE[row.key]}"
        case "open":
            return f"open: {MISSING.get(row.key, 'no test yet')}"


if __name__ == "__main__":
    OUTPUT.write_text(conformance())
    sys.exit(0)
