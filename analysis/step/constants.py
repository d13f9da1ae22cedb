"""Values that are computed from constants alone: they can be made anywhere, so they cost no memory and need no gate."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from .order import Order


def constants_only(order: Order, outside: Iterable[SSAValue] = ()) -> frozenset[SSAValue]:
    """The values of a block that are computed from constants alone; `outside`: captured constants."""
    constants = set(outside)
    if not constants:
        return order.constants
    order.add_constants(constants)
    return frozenset(constants)
