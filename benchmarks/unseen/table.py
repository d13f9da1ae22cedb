"""The lines that `savings.py` writes as a table in Markdown, with what they come to.

`python -m recompute.benchmarks.unseen.table open.jsonl [more.jsonl]`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

EQUAL = 0.02
"""Two amounts of memory that differ by a smaller share count as equal."""
HEAD = (
    "| step | `jax.checkpoint` | FLOPs | ours, named | FLOPs | / theirs | ours, bare | / theirs | model / XLA |",
    "|---|---|---|---|---|---|---|---|---|",
)

Row = dict[str, Any]


def rows(paths: Sequence[Path]) -> list[Row]:
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def table(found: Sequence[Row]) -> Iterator[str]:
    """Temporaries and floating-point operations as multiples of the plain step's."""
    yield from HEAD
    for row in found:
        if "error" in row:
            yield f"| {row['step']} | {row['error'][:80]} | | | | | | | |"
            continue
        plain, theirs, named, bare = row["plain"], row["checkpoint"], row["named"][0], row["bare"][0]
        cells = [
            *(theirs[key] / plain[key] for key in ("bytes", "flops")),
            *(named[key] / plain[key] for key in ("bytes", "flops")),
            named["bytes"] / theirs["bytes"],
            bare["bytes"] / plain["bytes"],
            bare["bytes"] / theirs["bytes"],
            named["model"] / named["bytes"],
        ]
        yield f"| {row['step']} | {' | '.join(f'{cell:.3f}' for cell in cells)} |"


def summary(found: Sequence[Row]) -> Iterator[str]:
    measured = [row for row in found if "error" not in row]
    for kind in ("named", "bare"):
        ratios = [row[kind][0]["bytes"] / row["checkpoint"]["bytes"] for row in measured]
        better = sum(ratio < 1 - EQUAL for ratio in ratios)
        worse = sum(ratio > 1 + EQUAL for ratio in ratios)
        shares = ", ".join(
            f"{sum(ratio <= bar for ratio in ratios) / len(found):.0%} at most {bar:.2f}"
            for bar in (1.02, 1.05, 1.1, 1.2)
        )
        yield f"{kind}: {better} better, {len(ratios) - better - worse} equal, {worse} worse; {shares} of theirs"
    models = [one["model"] / one["bytes"] for row in measured for one in (row["plain"], row["named"][0])]
    within = ", ".join(
        f"{sum(abs(ratio - 1) <= bar for ratio in models) / len(models):.0%} within {bar:.0%}" for bar in (0.15, 0.3)
    )
    yield f"model of XLA:CPU, plain and recomputed: {within}"
    yield f"{len(found) - len(measured)} of {len(found)} steps were refused"


def main() -> None:
    found = rows([Path(name) for name in sys.argv[1:]])
    print("\n".join([*table(found), "", *summary(found)]))


if __name__ == "__main__":
    main()
