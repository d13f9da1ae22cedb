"""Values that are computed from constants alone: they can be made anywhere, so they cost no memory and gate nothing."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from .order import Order


def constants_only(order: Order, outside: Iterable[SSAValue] = ()) -> frozenset[SSAValue]:
    """The values of a block that come from constants alone; `outside` are those that its region may capture."""
    given = tuple(outside)
    return order.constants_given(given) if given else order.constants
