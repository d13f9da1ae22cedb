"""Errors and remarks that point to the source: `file:line:col: error: what is wrong and what to do`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from .locations import source_position


def position_of(op: Operation) -> str:
    """`file:line:col` of the operation, or of the nearest operation around it that has one."""
    current: Operation | None = op
    while current is not None:
        if (position := source_position(current.location)) is not None:
            return ":".join(str(part) for part in position)
        current = current.parent_op()
    return "<unknown>"


class Refusal(PassFailedException):
    """A request that is not carried out. `str()` is one line that says where, why, and what to do."""

    def __init__(self, op: Operation, reason: str):
        self.operation = op
        self.reason = reason
        super().__init__(f"{position_of(op)}: error: {reason}")


@dataclass(frozen=True)
class Remark:
    """A decision and its reason, at the operation that it is about."""

    operation: Operation
    reason: str

    def __str__(self) -> str:
        return f"{position_of(self.operation)}: remark: {self.reason}"
