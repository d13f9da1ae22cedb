"""The output of `--pass-statistics`: counts after each pass, and the time of each part at the end; and the report of
`--timing`, in the form of MLIR's `--mlir-timing`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from xdsl.dialects.builtin import ModuleOp

from ..dialects.names import Names
from ..support.timing import TimedPart

_RULE = f"==={'-' * 73}==="
_TITLE = "... Execution time report ..."
_LEAST_REST = 0.001
"""The remainder of a part gets a row if it is more than this share of the whole."""


def timing_report(whole: TimedPart, display: str) -> str:
    """Return the time of each part of a run.

    Args:
        whole: The measured run.
        display: "tree" for parts inside of parts, "list" for parts in order of their own time.
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
    if part.parts and part.rest_seconds > _LEAST_REST * whole:
        yield part.rest_seconds, "  " * depth + "Rest"


def _list(whole: TimedPart) -> list[tuple[float, str]]:
    """Return the parts by the time in them and in none of their own parts, the longest first."""
    seconds = dict[str, float]()

    def collect(part: TimedPart) -> None:
        for inner in part.parts.values():
            seconds[inner.name] = seconds.get(inner.name, 0.0) + inner.rest_seconds
            collect(inner)

    collect(whole)
    rows = [(time, name) for name, time in seconds.items()]
    return sorted([*rows, (whole.rest_seconds, "Rest")], key=lambda row: -row[0])


_REST = 0.01
"""The remainder of a part gets a row if it is more than this share of the part."""


@dataclass(frozen=True)
class Counts:
    """The number of operations of a module, nested ones included, and of copies among them."""

    operations: int
    copies: int

    @classmethod
    def of(cls, module: ModuleOp) -> Counts:
        is_copy = [Names.COPY in op.attributes for op in module.walk()]
        return cls(len(is_copy), sum(is_copy))


@dataclass(frozen=True)
class Statistics:
    """One run of one pass."""

    name: str
    operations_before: int
    operations_after: int
    copies_after: int

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.operations_before} -> {self.operations_after} operations, {self.copies_after} copies"
        )

    def to_text(self, form: str) -> str:
        return json.dumps(asdict(self)) if form == "json" else str(self)


@dataclass(frozen=True)
class _Row:
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
    """Return one row per part, with its inner parts below it and indented: seconds, share of the whole, name.

    As JSON, one line per part, named by its path: `total/recompute/clone`.
    """
    rows = list(_rows(whole, (whole.name,), whole.seconds or 1.0))
    if form == "json":
        return "\n".join(row.to_json() for row in rows)
    return "\n".join(["  seconds  percent  part", *map(str, rows)])


def _rows(timed_part: TimedPart, path: tuple[str, ...], whole: float) -> Iterator[_Row]:
    yield _Row(path, timed_part.seconds, 100 * timed_part.seconds / whole)
    for inner in timed_part.parts.values():
        yield from _rows(inner, (*path, inner.name), whole)
    if timed_part.parts and timed_part.rest_seconds > _REST * timed_part.seconds:
        yield _Row((*path, "rest"), timed_part.rest_seconds, 100 * timed_part.rest_seconds / whole)
