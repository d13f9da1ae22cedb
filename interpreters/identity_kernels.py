"""Kernels of operations that return their operands: barriers, tokens, marks, and moves between memories."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation

from ..dialects.mark_calls import is_mark
from ..dialects.placements import is_placement
from ..dialects.recompute import DependOp, TokenOp
from ..dialects.stablehlo.control import OptimizationBarrierOp
from .kernels.arrays import Kernel


def identity_kernel(op: Operation) -> Kernel | None:
    """Return the kernel of an operation that only returns its operands, or None for any other operation."""
    if is_placement(op):
        return _copy_operands
    return _first if is_mark(op) else ORDERING.get(type(op))


def _first(*operands: Any) -> tuple[Any, ...]:
    return operands[:1]


def _copy_operands(*operands: Any) -> tuple[Any, ...]:
    """Return copies of the operands, which is the effect of a transfer to another memory."""
    return tuple([operand.copy() for operand in operands])


def _forward(*operands: Any) -> tuple[Any, ...]:
    return operands


# The kernels of ordering operations. They return their operands. A token has no value.
ORDERING: dict[type[Operation], Kernel] = {
    OptimizationBarrierOp: _forward,
    TokenOp: lambda *gates: (None,),  # pyright: ignore[reportAssignmentType]
    DependOp: lambda *operands: operands[:-1],
}
