"""Predicates: operations that are copies, and loops with recomputed operations."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from ...dialects.recompute import Names
from ...support.walk import every_operation


def is_copy(op: Operation) -> bool:
    return Names.COPY in op.attributes and isinstance(op.attributes[Names.COPY], IntegerAttr)


def is_repeated_inside(op: Operation) -> bool:
    """Whether another loop recomputes operations of this loop: its body contains originals of copies."""
    inside = every_operation(op)[1:] if op.regions else []
    return any(Names.ID in inner.attributes and not is_copy(inner) for inner in inside)
