"""Parse the attributes of a `stablehlo.compare`: its direction and its comparison type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from xdsl.ir import Attribute

from ...dialects.stablehlo.attributes import (
    ComparisonDirection,
    ComparisonDirectionAttr,
    ComparisonType,
    ComparisonTypeAttr,
)


class Comparison(NamedTuple):
    """The attributes of a comparison. `order`: the comparison type; None if it follows from the type of the
    operands."""

    direction: ComparisonDirection
    order: ComparisonType | None


def direction_of(attributes: Mapping[str, Attribute]) -> ComparisonDirection | None:
    """Return the direction in the attributes of a comparison, or None if there is none."""
    direction = attributes.get("comparison_direction")
    return direction.data if isinstance(direction, ComparisonDirectionAttr) else None


def comparison_of(attributes: Mapping[str, Attribute]) -> Comparison | None:
    """Return the comparison that these attributes describe, or None if the direction is missing or an attribute is
    unknown."""
    direction, order = direction_of(attributes), attributes.get("compare_type")
    if direction is None or attributes.keys() - {"comparison_direction", "compare_type"}:
        return None
    if order is None:
        return Comparison(direction, None)
    return Comparison(direction, order.data) if isinstance(order, ComparisonTypeAttr) else None
