"""What `--pass-statistics` says on standard error: counts after each pass, and at the end where the time went."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from xdsl.dialects.builtin import ModuleOp

from ..dialects.recompute import Names
from ..support.timing import Part

_REST = 0.01
"""The share of a part from which on it is said that it is more than the parts within."""


@dataclass(frozen=True)
class Counts:
    """Operations of a module, nested ones too, and how many of them are copies."""

    operations: int
    copies: int

    @classmethod
    def of(cls, module: ModuleOp) -> Counts:
        copied = [Names.COPY in op.attributes for op in module.walk()]
        return cls(len(copied), sum(copied))


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

    def told(self, form: str) -> str:
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


def times(whole: Part, form: str) -> str:
    """A row for each part, those within it below it and indented: seconds, their share of the whole, name.

    As JSON a line for each, with a path as its name: `total/recompute/clone`.
    """
    rows = list(_rows(whole, (whole.name,), whole.seconds or 1.0))
    if form == "json":
        return "\n".join(row.to_json() for row in rows)
    return "\n".join(["  seconds  percent  part", *map(str, rows)])


def _rows(one: Part, path: tuple[str, ...], whole: float) -> Iterator[_Row]:
    yield _Row(path, one.seconds, 100 * one.seconds / whole)
    for inner in one.parts.values():
        yield from _rows(inner, (*path, inner.name), whole)
    if one.parts and one.rest_seconds > _REST * one.seconds:
        yield _Row((*path, "rest"), one.rest_seconds, 100 * one.rest_seconds / whole)
