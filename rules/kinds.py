"""What kind of operation it is, beyond what running it twice would do."""

from __future__ import annotations

from xdsl.ir import Operation

from .facts import Kind
from .registry import facts_of


def is_constant(op: Operation) -> bool:
    """It costs nothing and keeps nothing: it is read where it is, and may be merged across phases."""
    return _is(op, Kind.CONSTANT)


def is_collective(op: Operation) -> bool:
    """All devices must take part, as often and in the same order."""
    return _is(op, Kind.COLLECTIVE)


def is_cast(op: Operation) -> bool:
    """The operand in another element type."""
    return _is(op, Kind.CAST)


def is_product(op: Operation) -> bool:
    """A product of matrices, or a convolution."""
    return _is(op, Kind.PRODUCT)


def is_ordering(op: Operation) -> bool:
    """It says what waits for what, and computes nothing."""
    return _is(op, Kind.ORDERING)


def reads_memory(op: Operation) -> bool:
    return _is(op, Kind.READS_MEMORY)


def writes_memory(op: Operation) -> bool:
    return _is(op, Kind.WRITES_MEMORY)


def _is(op: Operation, kind: Kind) -> bool:
    facts = facts_of(op)
    # Nearly all operations are of no kind, and to look for one in a set asks its hash first.
    return facts is not None and bool(facts.kinds) and kind in facts.kinds
