"""Format the output lines of `savings.py` as Markdown tables, each with a summary.

    python -m recompute.benchmarks.unseen.savings_page open.jsonl                          # print the table
    python -m recompute.benchmarks.unseen.savings_page --write open.jsonl held_back.jsonl  # write the page

Results: tables on standard output, or in docs/measured/savings.md. Time: about 1 second.

Nothing is measured. `--write` also stores the lines next to this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from recompute.benchmarks.harness.command_line import benchmark_parser
from recompute.benchmarks.harness.markdown import markdown_table
from recompute.benchmarks.harness.paths import MEASURED_PAGES

HERE = Path(__file__).resolve().parent
PAGE = MEASURED_PAGES / "savings.md"
STORED = {"open": HERE / "open.jsonl", "held_back": HERE / "held_back.jsonl"}
EQUAL = 0.02
"""Amounts of memory whose relative difference is at most this share count as equal."""
HEAD = (
    "step",
    "`jax.checkpoint`",
    "FLOPs",
    "ours, named",
    "FLOPs",
    "/ theirs",
    "ours, bare",
    "/ theirs",
    "model / XLA",
)

Row = dict[str, Any]


def rows(paths: Sequence[Path]) -> list[Row]:
    """Read the lines of files that `savings.py` wrote."""
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def cells(row: Row) -> list[str]:
    """Return the cells of a step in the order of `HEAD`: temporaries and FLOPs, as multiples of the plain step's."""
    if "error" in row:
        return [row["step"], row["error"][:80], *[""] * (len(HEAD) - 2)]
    plain, theirs, named, bare = row["plain"], row["checkpoint"], row["named"][0], row["bare"][0]
    ratios = [
        *(theirs[key] / plain[key] for key in ("bytes", "flops")),
        *(named[key] / plain[key] for key in ("bytes", "flops")),
        named["bytes"] / theirs["bytes"],
        bare["bytes"] / plain["bytes"],
        bare["bytes"] / theirs["bytes"],
        named["model"] / named["bytes"],
    ]
    return [row["step"], *(f"{ratio:.3f}" for ratio in ratios)]


def counts(result: Sequence[Row], kind: str) -> tuple[int, int, int]:
    """Return the numbers of steps that need less memory than with `jax.checkpoint`, equal memory, and more memory.
    Errors are not counted."""
    ratios = [row[kind][0]["bytes"] / row["checkpoint"]["bytes"] for row in result if "error" not in row]
    better, worse = sum(ratio < 1 - EQUAL for ratio in ratios), sum(ratio > 1 + EQUAL for ratio in ratios)
    return better, len(ratios) - better - worse, worse


def summary(result: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a summary: counts of better, equal and worse steps, and the model's errors."""
    measured = [row for row in result if "error" not in row]
    for kind in ("named", "bare"):
        ratios = [row[kind][0]["bytes"] / row["checkpoint"]["bytes"] for row in measured]
        better, equal, worse = counts(result, kind)
        shares = ", ".join(
            f"{sum(ratio <= bar for ratio in ratios) / len(result):.0%} at most {bar:.2f}"
            for bar in (1.02, 1.05, 1.1, 1.2)
        )
        yield f"{kind}: {better} better, {equal} equal, {worse} worse; {shares} of theirs"
    models = [entry["model"] / entry["bytes"] for row in measured for entry in (row["plain"], row["named"][0])]
    within = ", ".join(
        f"{sum(abs(ratio - 1) <= bar for ratio in models) / len(models):.0%} within {bar:.0%}" for bar in (0.15, 0.3)
    )
    yield f"XLA:CPU model, plain and recomputed: {within}"
    yield f"{len(result) - len(measured)} of {len(result)} steps were refused"


def block(result: Sequence[Row]) -> str:
    """Return the summary and the table as Markdown."""
    return "\n".join([*(f"- {line}" for line in summary(result)), "", markdown_table(HEAD, map(cells, result))])


def page() -> str:
    """Return the page of docs/ with the tables of the stored lines inserted."""
    text = PAGE.read_text()
    for group, path in STORED.items():
        begin, end = f"<!-- {group} -->", f"<!-- end of {group} -->"
        new = f"{begin}\n\n{block(rows([path]))}\n\n{end}"
        text = re.sub(f"{begin}.*?{end}", lambda _, new=new: new, text, flags=re.DOTALL)
    return text


def store(group: str, result: Sequence[Row]) -> None:
    """Write the rows of one group of steps next to this module."""
    STORED[group].write_text("".join(json.dumps(row) + "\n" for row in result))


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files that `savings` wrote")
    write = f"store the lines of two files, of the open and the held-back steps, and write docs/measured/{PAGE.name}"
    parser.add_argument("--write", action="store_true", help=write)
    options = parser.parse_args()
    if options.write:
        if len(options.files) != len(STORED):
            parser.error(f"--write expects {len(STORED)} files, in this order: {', '.join(STORED)}")
        for group, path in zip(STORED, options.files, strict=True):
            store(group, rows([path]))
        PAGE.write_text(page())
    else:
        print(block(rows(options.files)))


if __name__ == "__main__":
    main()
