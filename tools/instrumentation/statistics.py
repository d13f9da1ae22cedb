"""The output of `--pass-statistics` for each pass: the number of operations before and after the pass, and the number
of copies."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from xdsl.dialects.builtin import ModuleOp

from ...dialects.names import Names
from ...support.counted import counted


@dataclass(frozen=True)
class Counts:
    """The number of operations in a module, including nested ones, and the number of copies among them."""

    operations: int
    copies: int

    @classmethod
    def of(cls, module: ModuleOp) -> Counts:
        is_copy = [Names.COPY in op.attributes for op in module.walk()]
        return cls(len(is_copy), sum(is_copy))


@dataclass(frozen=True)
class Statistics:
    """The statistics of one pass run: the pass name, the number of operations before and after it, and the number of
    copies."""

    name: str
    operations_before: int
    operations_after: int
    copies_after: int

    def __str__(self) -> str:
        operations, copies = counted(self.operations_after, "operation"), counted(self.copies_after, "copy", "copies")
        return f"{self.name}: {self.operations_before} -> {operations}, {copies}"

    def to_text(self, form: str) -> str:
        """Return the statistics as one line, in the form "text" or "json"."""
        return json.dumps(asdict(self)) if form == "json" else str(self)
