"""Predicates for the classes of operations (`OpClass`)."""

from __future__ import annotations

from xdsl.ir import Operation

from .facts import OpClass
from .registry import facts_of


def is_constant(op: Operation) -> bool:
    """Whether it is a constant: free, without operands to keep live, and mergeable across phases."""
    return _is(op, OpClass.CONSTANT)


def is_collective(op: Operation) -> bool:
    """Whether all devices must execute it, equally often and in the same order."""
    return _is(op, OpClass.COLLECTIVE)


def is_cast(op: Operation) -> bool:
    """Whether it converts the operand to another element type."""
    return _is(op, OpClass.CAST)


def is_product(op: Operation) -> bool:
    """Whether it is a matrix product or a convolution."""
    return _is(op, OpClass.PRODUCT)


def is_ordering(op: Operation) -> bool:
    """Whether it only orders other operations, and computes nothing."""
    return _is(op, OpClass.ORDERING)


def reads_memory(op: Operation) -> bool:
    return _is(op, OpClass.READS_MEMORY)


def writes_memory(op: Operation) -> bool:
    return _is(op, OpClass.WRITES_MEMORY)


def _is(op: Operation, kind: OpClass) -> bool:
    facts = facts_of(op)
    # Nearly all operations have no kinds; a lookup in the empty set would still hash `kind`.
    return facts is not None and bool(facts.kinds) and kind in facts.kinds
