"""The exponent with which a cost grows with the size of its input."""

from __future__ import annotations

from math import log


def growth_exponent(sizes: tuple[float, float], costs: tuple[float, float]) -> float:
    """Return the exponent e for which `costs[1] / costs[0] = (sizes[1] / sizes[0]) ** e`. An exponent of 1 means linear
    growth."""
    return log(costs[1] / costs[0]) / log(sizes[1] / sizes[0])
