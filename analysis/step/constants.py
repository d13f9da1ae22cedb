"""Values that are computed from constants alone: they can be made anywhere, so they cost no memory and gate nothing."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from .order import Order


def constants_only(order: Order, outside: Iterable[SSAValue] = ()) -> frozenset[SSAValue]:
    """The values of a block that come from constants alone; `outside` are those that its region may capture."""
    found = set(outside)
    if not found:
        return order.constants
    order.add_constants(found)
    return frozenset(found)
