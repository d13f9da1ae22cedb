"""Bytes of a type, and which results share the storage of an operand."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.guards import is_complex_type, is_shaped
from .names import name_of


def element_bytes(element: Attribute) -> int | None:
    """Bytes of one element; an i1 and every narrower-than-byte type takes one. None for what holds no numbers."""
    if is_complex_type(element):
        part = element_bytes(element.element_type)
        return None if part is None else 2 * part
    if isinstance(element, IntegerType | AnyFloat):
        return -(-element.bitwidth // 8)
    return 8 if isinstance(element, IndexType) else None


def type_bytes(type_: Attribute) -> int | None:
    """Bytes that a value of the type occupies; tokens and the like 0; None for a dynamic shape."""
    if is_shaped(type_):
        size = element_bytes(type_.element_type)
        shape = type_.get_shape()
        return None if size is None or any(dimension < 0 for dimension in shape) else size * prod(shape)
    return element_bytes(type_) or 0


# Results that are another way to look at operand 0 ...
STRIDED_VIEWS = frozenset({"stablehlo.transpose", "stablehlo.broadcast_in_dim"})
# ... and those that are so only while the operand lies in memory row by row.
DENSE_VIEWS = frozenset({"stablehlo.reshape"})
# Result i is operand i.
FORWARDS = frozenset({"stablehlo.optimization_barrier", "recompute.depend"})


def forwarded_operand(op: Operation, index: int) -> SSAValue | None:
    """The operand whose storage result `index` shares, if it shares one whatever the layout."""
    name = name_of(op)
    if name in FORWARDS:
        return op.operands[index]
    return op.operands[0] if name in STRIDED_VIEWS else None
