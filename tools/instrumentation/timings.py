"""Time tables for the parts of a run, for `--timing` (in the format of MLIR's `--mlir-timing`) and
`--pass-statistics`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from ...support.timing import TimedPart

_RULE = f"==={'-' * 73}==="
_TITLE = "... Execution time report ..."
_MIN_SHARE_OF_WHOLE = 0.001
"""The minimum share of the whole run for which the remainder of a part gets its own row in the timing report."""


def timing_report(whole: TimedPart, display: str) -> str:
    """Return the timing report of a run, in seconds and percent.

    Args:
        whole: The measured run.
        display: "tree" for parts below the parts that contain them, "list" for parts sorted by their own time.
    """
    seconds = whole.seconds or 1e-9
    rows = _tree(whole, 0, seconds) if display == "tree" else _list(whole)
    lines = [f"  {time:8.4f} ({100 * time / seconds:5.1f}%)  {name}" for time, name in rows]
    return "\n".join(
        [
            *(_RULE, f"{_TITLE:^{len(_RULE)}}".rstrip(), _RULE),
            f"  Total Execution Time: {whole.seconds:.4f} seconds",
            "",
            "  ----Wall Time----  ----Name----",
            *lines,
            f"  {whole.seconds:8.4f} (100.0%)  Total",
        ]
    )


def _tree(part: TimedPart, depth: int, whole: float) -> Iterator[tuple[float, str]]:
    for inner in part.parts.values():
        yield inner.seconds, "  " * depth + inner.name
        yield from _tree(inner, depth + 1, whole)
    if part.parts and part.rest_seconds > _MIN_SHARE_OF_WHOLE * whole:
        yield part.rest_seconds, "  " * depth + "Rest"


def _list(whole: TimedPart) -> list[tuple[float, str]]:
    """Return the time of each part, excluding its inner parts, the longest first."""
    seconds = dict[str, float]()

    def collect(part: TimedPart) -> None:
        for inner in part.parts.values():
            seconds[inner.name] = seconds.get(inner.name, 0.0) + inner.rest_seconds
            collect(inner)

    collect(whole)
    rows = [(time, name) for name, time in seconds.items()]
    return sorted([*rows, (whole.rest_seconds, "Rest")], key=lambda row: -row[0])


_MIN_SHARE_OF_PART = 0.01
"""The minimum share of a part that its remainder must take for a row of its own in the statistics."""


@dataclass(frozen=True)
class _Row:
    """A row of the statistics: a part of the run. `percent`: the time of the part in percent of the whole run."""

    path: tuple[str, ...]
    seconds: float
    percent: float

    def __str__(self) -> str:
        return f"{self.seconds:9.4f}  {self.percent:6.1f}%  {'  ' * (len(self.path) - 1)}{self.path[-1]}"

    def to_json(self) -> str:
        return json.dumps(
            {"part": "/".join(self.path), "seconds": round(self.seconds, 6), "percent": round(self.percent, 2)}
        )


def times(whole: TimedPart, form: str) -> str:
    """Return the time statistics, with a row for each part: seconds, percent of the whole run, and name.

    Args:
        whole: The measured run.
        form: "text", with inner parts indented, or "json", with parts named by their paths, `total/recompute/clone`.
    """
    rows = list(_rows(whole, (whole.name,), whole.seconds or 1.0))
    if form == "json":
        return "\n".join(row.to_json() for row in rows)
    return "\n".join(["  seconds  percent  part", *map(str, rows)])


def _rows(timed_part: TimedPart, path: tuple[str, ...], whole: float) -> Iterator[_Row]:
    yield _Row(path, timed_part.seconds, 100 * timed_part.seconds / whole)
    for inner in timed_part.parts.values():
        yield from _rows(inner, (*path, inner.name), whole)
    if timed_part.parts and timed_part.rest_seconds > _MIN_SHARE_OF_PART * timed_part.seconds:
        yield _Row((*path, "rest"), timed_part.rest_seconds, 100 * timed_part.rest_seconds / whole)
