"""Rewrite unusual JAX steps with `recompute-opt`, and check the output with XLA, the proof, and numpy.

    python -m recompute.benchmarks.consumers                       # all steps, one line for each set of options
    python -m recompute.benchmarks.consumers psum fp8 --options plain outputs
    python -m recompute.benchmarks.consumers --write               # also write the table of docs/measured/consumers.md

Results: verdicts, and distances in units of rounding, in docs/measured/consumers.md. Time: about 15 minutes.

The steps use two devices of the host. Each step runs in its own process, so that an abort of XLA becomes a line of the
table. The exit status is 1 if a program is not proved, differs in numpy, does not compile, or is more than four times
as far from the plain step as `jax.checkpoint`. It is also 1 if a tool fails without an error at a source position.
"""

# pyright: basic

from __future__ import annotations

import os

from recompute.benchmarks.harness.command_line import add_names, benchmark_parser
from recompute.benchmarks.harness.xla_flags import flags_with_host_devices

os.environ["XLA_FLAGS"] = flags_with_host_devices(2)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import json
import sys
from collections.abc import Iterator, Sequence

from recompute.benchmarks.consumers.all_cases import CASES
from recompute.benchmarks.consumers.consumers_page import tables
from recompute.benchmarks.consumers.step_checks import BUG, PASSES, CheckRow, rows_of
from recompute.benchmarks.harness.markdown import write_tables
from recompute.benchmarks.harness.paths import MEASURED_PAGES
from recompute.benchmarks.harness.processes import run_module

PAGE = MEASURED_PAGES / "consumers.md"
HEAD = ("step", "options", "outcome", "proof", "numpy", "XLA", "ours", "jax.checkpoint")


def measure_apart(name: str, options: Sequence[str]) -> Iterator[CheckRow]:
    """Measure one step in a new process, and yield its rows. If the process fails, the last row reports the failure."""
    chosen = ["--options", *options] if options else []
    outcome = run_module("recompute.benchmarks.consumers", name, "--json", *chosen)
    rows = [CheckRow(**json.loads(line)) for line in outcome.stdout.splitlines() if line.startswith("{")]
    yield from rows
    if outcome.returncode not in (0, 1) or not rows:
        lines = [line for line in outcome.stderr.splitlines() if "Check failed" in line or "Error" in line] or ["?"]
        yield CheckRow(name, "?", BUG, f"the process ended with exit status {outcome.returncode}: {lines[-1]}")


def cells(row: CheckRow) -> list[str]:
    """Return the cells of a row, in the order of `HEAD`."""
    return [row.step, row.options, row.outcome, row.proof, row.numpy, row.xla, row.ours, row.theirs]


def aligned(texts: Sequence[str]) -> str:
    """Return the cells of a row, or the titles of `HEAD`, as a line of aligned columns."""
    widths = (28, 12, 10, 6, 8, 8, 18, 18)
    return " ".join(f"{text:{width}}" for text, width in zip(texts, widths, strict=True))


def line_of(row: CheckRow) -> str:
    """Return a row as a line of aligned columns, with its reason at the end."""
    return f"{aligned(cells(row))} {'BUG ' if row.is_bug else ''}{row.reason}".rstrip()


def main() -> int:
    """Measure the requested steps, print a line for each set of options, and return 1 if some row is a bug."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "step", CASES)
    parser.add_argument(
        "--options",
        nargs="*",
        default=(),
        choices=PASSES,
        metavar="OPTIONS",
        help=f"the sets of options of `recompute-opt` (default: all that apply), from: {', '.join(PASSES)}",
    )
    parser.add_argument("--json", action="store_true", help="measure in this process, and print each row as JSON")
    parser.add_argument("--write", action="store_true", help=f"write the tables of docs/measured/{PAGE.name}")
    options = parser.parse_args()
    if options.write and (options.names or options.options):
        parser.error("--write cannot be combined with steps or options: the page lists all of them")
    rows = list[CheckRow]()
    if not options.json:
        print(aligned(HEAD))
    for name in options.names or CASES:
        for row in rows_of(CASES[name], options.options) if options.json else measure_apart(name, options.options):
            rows.append(row)
            print(json.dumps(row.as_data()) if options.json else line_of(row), flush=True)
    failed = any(row.is_bug for row in rows)
    if options.write and not failed:
        write_tables(PAGE, tables(rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
