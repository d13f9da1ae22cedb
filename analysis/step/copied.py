"""Which operations are copies."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from ...dialects.recompute import Names


def is_copy(op: Operation) -> bool:
    return Names.COPY in op.attributes and isinstance(op.attributes[Names.COPY], IntegerAttr)
