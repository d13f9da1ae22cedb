"""Count the operations of a step by purpose: forward, gradient, copies, tokens and update."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields

from xdsl.ir import Operation

from ...dialects.stablehlo.control import OptimizationBarrierOp
from ...rules.effects import is_constant
from ...support.operations import name_of
from ..step.marks import is_copy
from ..step.phases import Phases

SILENT = frozenset({"recompute.depend", "func.return"})
"""Operations that are not counted."""


@dataclass(frozen=True)
class OperationCounts:
    """Numbers of operations by purpose. Constants, delays and the terminator are not counted.

    `tokens` counts the tokens for which copies wait, or the barriers to which these tokens are lowered. Other barriers
    are not counted.
    """

    forward: int
    gradient: int
    copies: int
    tokens: int
    update: int


def count_operations(phases: Phases) -> OperationCounts:
    """Count the operations of a step by purpose.

    Copies and tokens are counted separately, although they are gradient operations.
    """
    purposes = Counter(_purpose(phases, op) for op in phases.order.operations)
    return OperationCounts(*(purposes[field.name] for field in fields(OperationCounts)))


def _purpose(phases: Phases, op: Operation) -> str | None:
    """Return the field of `OperationCounts` in which the operation is counted; None if it is not counted."""
    if is_constant(op) or name_of(op) in SILENT:
        return None
    if is_copy(op):
        return "copies"
    if name_of(op) == "recompute.token":
        return "tokens"
    if name_of(op) == OptimizationBarrierOp.name:
        readers = (reader for result in op.results for reader in phases.order.readers(result))
        return "tokens" if any(is_copy(reader) for reader in readers) else None
    return "forward" if phases.is_forward(op) else phases.phase[op]
