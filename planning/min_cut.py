"""Compute a minimum cut: the cheapest set of values to keep from which all needed values can be recomputed.

The network is the data flow with capacities on the values (L. R. Ford, D. R. Fulkerson, "Maximal flow through a
network", 1956). Among cuts of equal cost, the cut nearest to the needed values is chosen, so that the fewest values are
recomputed. networkx computes the maximum flow.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Value = TypeVar("Value", bound=Hashable)
_SOURCE, _SINK = "source", "sink"


def min_cut(
    needed: Iterable[Value],
    needs: Mapping[Value, Sequence[Value]],
    cost: Mapping[Value, int],
    work: Mapping[Value, int] | None = None,
) -> frozenset[Value]:
    """Return the values to keep so that the total cost of keeping and recomputing values is lowest.

    Args:
        needed: The values that must be available.
        needs: The operands of each value; empty for values that are always available. A value without an entry cannot
            be recomputed: if it is needed, it must be kept.
        cost: The cost of keeping each value.
        work: The cost of recomputing each value, in the same unit; 0 for values without an entry.

    Returns:
        The values on the minimum cut.
    """
    # Importing networkx takes as long as importing the rest of planning, and only loops and segment budgets need it.
    import networkx as nx

    flow = nx.DiGraph()
    flow.add_node(_SOURCE)
    flow.add_node(_SINK)
    pending = list(dict.fromkeys(needed))
    visited = set[Value]()
    for value in pending:
        flow.add_edge((value, "out"), _SINK)
    while pending:
        value = pending.pop()
        if value in visited:
            continue
        visited.add(value)
        flow.add_edge((value, "in"), (value, "out"), capacity=cost[value])
        if value not in needs:
            flow.add_edge(_SOURCE, (value, "in"))
            continue
        if work is not None and work.get(value):
            flow.add_edge(_SOURCE, (value, "in"), capacity=work[value])
        for operand in needs[value]:
            flow.add_edge((operand, "out"), (value, "in"))
            pending.append(operand)
    _, (before, after) = nx.minimum_cut(flow, _SOURCE, _SINK)
    return frozenset(value for value in visited if (value, "in") in before and (value, "out") in after)
