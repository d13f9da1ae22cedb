"""Compare `recompute.jax.jit` with the frameworks' own remat, on steps in the style of their users.

    python -m recompute.benchmarks.peers                    # all steps: memory, FLOPs, bits, seconds, distances
    python -m recompute.benchmarks.peers --only 'linen gpt' --only unet --json rows.json
    python -m recompute.benchmarks.peers --write            # also write the tables of docs/measured/jax_peers*.md
    python -m recompute.benchmarks.peers --from rows.json  # print the tables of earlier measurements

Results: temporaries, FLOPs and CPU seconds as multiples of the plain step's, in docs/measured/jax_peers.md and
jax_peers_default_flags.md. Time: about 1 hour.

Each step is compiled in its own process, and runs once for its results. On a GPU, the steps are also timed, with and
without the latency-hiding scheduler, and the device's peak is read. The exit status is 1 if a step does not meet a
requirement (`peers/bars.py`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recompute.benchmarks.harness.command_line import (
    add_json,
    add_only,
    add_size,
    benchmark_parser,
    report_progress,
    selected,
    write_json,
)
from recompute.benchmarks.harness.markdown import insert_tables
from recompute.benchmarks.harness.paths import MEASURED_PAGES
from recompute.benchmarks.harness.processes import json_from_module
from recompute.benchmarks.peers import tables
from recompute.benchmarks.peers.all_peers import PEERS
from recompute.benchmarks.peers.peer_forms import FORMS
from recompute.benchmarks.peers.result_distances import Distances, Leaf

PAGES = (MEASURED_PAGES / "jax_peers.md", MEASURED_PAGES / "jax_peers_default_flags.md")


def measure_apart(*arguments: str) -> Any:
    """Run `measure_peer.py` in a new process, and return the JSON that it prints."""
    return json_from_module("recompute.benchmarks.peers.measure_peer", *arguments)


def measure(name: str, size: str) -> dict[str, Any]:
    """Measure the costs and the distances of a step in separate processes, and return them as JSON values."""
    report_progress(f"{name} ...")
    row = measure_apart(name, "--size", size)
    if "skipped" in row:
        return row
    if row["platform"] != "cpu":
        add_peaks(name, size, row["costs"])
    return {**row, "distances": measure_apart(name, "--what", "distances", "--size", "small")}


def add_peaks(name: str, size: str, costs: Mapping[str, Any]) -> None:
    """Add each variant's peak to its costs.

    Each peak is measured in a new process, since a device reports the peak of its whole process.
    """
    for setting, forms in costs.items():
        for form in [form for form in FORMS if form in forms]:
            forms[form]["peak_bytes"] = measure_apart(
                name, "--what", "peak", "--size", size, "--form", form, "--setting", setting
            )


def tables_by_name(rows: Mapping[str, Any]) -> dict[str, str]:
    """Return the tables, by the names of their markers on the pages."""
    settings = tables.settings_in(rows)
    named_tables = {"peers": tables.peers(PEERS, list(rows)), "versions": versions(rows)}
    for number, setting in enumerate(settings):
        named_tables[f"setting {number}"] = "\n\n".join(
            [
                f"### {setting[0].upper()}{setting[1:]}",
                "Temporaries, as multiples of the plain step's:",
                tables.ratios(rows, setting, "temp_bytes"),
                "FLOPs, as multiples of the plain step's; the body of a loop is counted once:",
                tables.ratios(rows, setting, "flops"),
                "Results that differ from the plain step's, and seconds as multiples of XLA's for the plain step:",
                tables.bits_and_times(rows, setting),
            ]
        )
    if settings:
        named_tables["missed"] = "\n".join(tables.misses(rows, settings[0])) or "Every step meets the requirements."
    named_tables["distances"] = "\n\n".join(
        [tables.distances(rows), "\n".join(missed_distances(rows)) or "Every step meets the requirements."]
    )
    return named_tables


def versions(rows: Mapping[str, Any]) -> str:
    """Return a sentence that names the versions of JAX and the platforms of the measurements."""
    result = sorted({f"jax {row['jax']} on {row['platform']}" for row in rows.values() if "jax" in row})
    return f"Measured with {', '.join(result)}."


def missed_distances(rows: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each requirement on distances that a step does not meet."""
    for name, row in rows.items():
        if "distances" in row:
            result = Distances(tuple(Leaf(**leaf) for leaf in row["distances"]["leaves"]))
            yield from (f"- {name}: {line}" for line in result.missed())


def with_tables(pages: Mapping[Path, str], named_tables: Mapping[str, str]) -> dict[Path, str]:
    """Return the pages with each table inserted between its markers."""
    written = dict(pages)
    for name, table in named_tables.items():
        marker = f"<!-- {name} -->\n"
        path = next((path for path, page in written.items() if marker in page), None)
        assert path is not None, f"no page has the line '<!-- {name} -->' to mark the place of this table"
        written[path] = insert_tables(written[path], {name: table})
    return written


def main() -> None:
    """Measure or read the rows, print the tables, and exit with 1 if a requirement is not met."""
    parser = benchmark_parser(__doc__)
    add_only(parser, "step", PEERS)
    add_size(parser)
    add_json(parser)
    earlier = "read earlier measurements from FILE, which --json wrote, and measure only the steps of --only"
    parser.add_argument("--from", dest="measurements", type=Path, metavar="FILE", help=earlier)
    parser.add_argument("--write", action="store_true", help="write the tables of docs/measured/jax_peers*.md")
    options = parser.parse_args()
    if options.write and (options.only or options.size != "large"):
        parser.error("--write requires all steps in the large size: leave out --only and --size")
    rows: dict[str, Any] = json.loads(options.measurements.read_text()) if options.measurements else {}
    for name in [] if options.measurements and not options.only else selected(PEERS, options.only):
        rows[name] = measure(name, options.size)
        write_json(options.json, rows)
    named_tables = tables_by_name(rows)
    print("\n\n".join(named_tables.values()))
    if options.write and {row["platform"] for row in rows.values()} != {"cpu"}:
        sys.exit("the pages were not written: they contain only measurements on CPU")
    if options.write:
        for path, page in with_tables({path: path.read_text() for path in PAGES}, named_tables).items():
            path.write_text(page)
    first = tables.settings_in(rows)[:1]
    sys.exit(any([*(line for entry in first for line in tables.misses(rows, entry)), *missed_distances(rows)]))


if __name__ == "__main__":
    main()
