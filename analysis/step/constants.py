"""Values that are computed from constants alone: they can be made anywhere, so they cost no memory and gate nothing."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from ...rules.effects import why_impure
from .order import Order


def constants_only(order: Order, outside: Iterable[SSAValue] = ()) -> set[SSAValue]:
    """The values of a block that come from constants alone; `outside` are those that its region may capture."""
    found = set(outside)
    for op, read in zip(order.operations, order.reads, strict=True):
        # Nearly every operation reads something else first, and is done with then.
        is_constant = all(map(found.__contains__, read))
        if is_constant and why_impure(op) is None:
            found.update(op.results)
    return found
