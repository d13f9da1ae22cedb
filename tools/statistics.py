"""The output of `--pass-statistics` after each pass: operations before and after, and copies."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from xdsl.dialects.builtin import ModuleOp

from ..dialects.names import Names
from ..support.counted import counted


@dataclass(frozen=True)
class Counts:
    """The number of operations in a module, nested ones included, and the number of copies among them."""

    operations: int
    copies: int

    @classmethod
    def of(cls, module: ModuleOp) -> Counts:
        is_copy = [Names.COPY in op.attributes for op in module.walk()]
        return cls(len(is_copy), sum(is_copy))


@dataclass(frozen=True)
class Statistics:
    """The statistics on one run of a pass."""

    name: str
    operations_before: int
    operations_after: int
    copies_after: int

    def __str__(self) -> str:
        operations, copies = counted(self.operations_after, "operation"), counted(self.copies_after, "copy", "copies")
        return f"{self.name}: {self.operations_before} -> {operations}, {copies}"

    def to_text(self, form: str) -> str:
        """Return the statistics in a line of the form "text" or "json"."""
        return json.dumps(asdict(self)) if form == "json" else str(self)
