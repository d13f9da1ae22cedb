"""Markdown tables of the measurements. `Rows` maps the name of each step to the output of `measure_peer.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recompute.benchmarks.harness.markdown import markdown_table
from recompute.benchmarks.peers.bars import missed, ratio
from recompute.benchmarks.peers.peer import Peer
from recompute.benchmarks.peers.peer_forms import FORMS, OURS, PLAIN, SAME, THEIRS

Rows = Mapping[str, Mapping[str, Any]]
OTHERS = tuple(form for form in FORMS if form != PLAIN)


def number_text(number: float | None, digits: int = 3) -> str:
    """Format a number with a fixed number of digits; None becomes `-`."""
    return "-" if number is None else f"{number:.{digits}f}"


def settings_in(rows: Rows) -> list[str]:
    """Return the names of the settings that occur in the rows."""
    return list(dict.fromkeys(name for row in rows.values() for name in row.get("costs", {})))


def costs_under(rows: Rows, setting: str) -> dict[str, Any]:
    """Return the costs of each step under one setting."""
    return {name: row["costs"][setting] for name, row in rows.items() if setting in row.get("costs", {})}


def ratios(rows: Rows, setting: str, field: str) -> str:
    """Return a table of cost ratios: of each variant to the plain step, and of recomputation to remat."""
    head = ["step", *OTHERS, f"{SAME} / theirs", "ours / theirs"]
    lines = [
        [name, *(number_text(ratio(costs, form, PLAIN, field)) for form in OTHERS), *ratios_to_theirs(costs, field)]
        for name, costs in costs_under(rows, setting).items()
    ]
    return markdown_table(head, lines)


def ratios_to_theirs(costs: Any, field: str) -> list[str]:
    """Return the costs of our variants divided by remat's cost, as strings."""
    return [number_text(ratio(costs, form, THEIRS, field)) for form in (SAME, OURS)]


def bits_and_times(rows: Rows, setting: str) -> str:
    """Return a table of differing results, compile times, and (on timed devices) step times and peaks.

    Times and peaks are multiples of the plain step's.
    """
    head = ["step", "results", *(f"differing results: {form}" for form in (THEIRS, SAME, OURS))]
    head += [
        *(f"XLA seconds: {form}" for form in (THEIRS, SAME, OURS)),
        "own seconds: same blocks",
        "own seconds: ours",
    ]
    measured = [
        field
        for field in ("step_seconds", "peak_bytes")
        if any(costs[PLAIN][field] for costs in costs_under(rows, setting).values())
    ]
    head += [f"{field.partition('_')[0]}: {form}" for field in measured for form in (THEIRS, SAME, OURS)]
    lines = list[list[str]]()
    for name, costs in costs_under(rows, setting).items():
        line = [name, str(costs[PLAIN]["results"])]
        line += [str(costs[form]["differing"]) if form in costs else "-" for form in (THEIRS, SAME, OURS)]
        line += [number_text(ratio(costs, form, PLAIN, "compile_seconds"), 2) for form in (THEIRS, SAME, OURS)]
        line += [own_seconds(costs, form) for form in (SAME, OURS)]
        line += [number_text(ratio(costs, form, PLAIN, field)) for field in measured for form in (THEIRS, SAME, OURS)]
        lines.append(line)
    return markdown_table(head, lines)


def own_seconds(costs: Any, form: str) -> str:
    """Return the CPU time of the rewrite divided by XLA's compile time for the plain step, as a string."""
    if form not in costs:
        return "-"
    return number_text(costs[form]["own_seconds"] / costs[PLAIN]["compile_seconds"], 2)


def misses(rows: Rows, setting: str) -> Iterator[str]:
    """Yield a line for each step that did not run, each error, and each requirement that is not met."""
    for name, row in rows.items():
        if "skipped" in row:
            yield f"- {name}: did not run: {row['skipped']}"
        yield from (f"- {name}: {form}: {error}" for form, error in row.get("errors", {}).items())
    for name, costs in costs_under(rows, setting).items():
        yield from (f"- {name}: {line}" for line in missed(costs))


def peers(existing: Mapping[str, Peer], names: Sequence[str]) -> str:
    """Return a table of the steps, with their framework's remat and our option `segments`."""
    lines = [[name, f"`{existing[name].remat}`", f"`{existing[name].segments}`"] for name in names]
    return markdown_table(["step", "theirs", "our segments"], lines)


def distances(rows: Rows) -> str:
    """Return a table of each step's number of results, largest distances, and share of close results."""
    lines = list[list[str]]()
    for name, row in rows.items():
        leaves = row.get("distances", {}).get("leaves", [])
        if leaves:
            theirs, ours = (max(leaf[form] for leaf in leaves) for form in ("theirs", "ours"))
            above = [leaf for leaf in leaves if not is_close(leaf)]
            share = 1 - len(above) / len(leaves)
            ran = "plain" if row["distances"].get("is_plain") else "rewritten"
            distances = number_text(theirs, 2), number_text(ours, 2)
            lines.append([name, ran, str(len(leaves)), *distances, f"{share:.0%}", farthest(above)])
    return markdown_table(
        ["step", "ours runs", "results", "theirs, worst", "ours, worst", "close", "ours, not close"], lines
    )


def farthest(leaves: Sequence[Mapping[str, Any]], most: int = 6) -> str:
    """Describe at most `most` results, in order of decreasing distance."""
    ordered = sorted(leaves, key=lambda leaf: -leaf["ours"])
    named = [f"`{leaf['name']}` {leaf['ours']:.2g} (theirs {leaf['theirs']:.2g})" for leaf in ordered[:most]]
    return ", ".join([*named, *([f"{len(leaves) - most} more"] if len(leaves) > most else [])])


def is_close(leaf: Mapping[str, Any]) -> bool:
    """Return whether a result is close, according to `Leaf.is_close`."""
    from recompute.benchmarks.peers.result_distances import Leaf

    return Leaf(leaf["name"], leaf["theirs"], leaf["ours"]).is_close
