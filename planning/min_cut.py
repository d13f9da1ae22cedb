"""The values to keep, of least cost, from which all that is wanted can be computed again.

A minimum cut of the data flow with capacities on the values (Ford and Fulkerson, 1956); of several cuts of the same
cost the one nearest to what is wanted, so that least is computed again. The flow is networkx's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import networkx as nx

Value = TypeVar("Value", bound=Hashable)


def min_cut(
    wanted: Iterable[Value],
    needs: Mapping[Value, Sequence[Value]],
    cost: Mapping[Value, int],
    work: Mapping[Value, int] | None = None,
) -> frozenset[Value]:
    """What to keep. `needs`: what each value is computed from, nothing for what is there anyway; a value that is not in
    it cannot be computed and has to be kept. `cost`: of keeping a value; `work`: of computing it again, in the same
    unit, nothing where it is not given."""
    flow = nx.DiGraph()
    flow.add_node(_SOURCE)
    flow.add_node(_SINK)
    pending, seen = list(dict.fromkeys(wanted)), set[Value]()
    for value in pending:
        flow.add_edge((value, "out"), _SINK)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        flow.add_edge((value, "in"), (value, "out"), capacity=cost[value])
        if value not in needs:
            flow.add_edge(_SOURCE, (value, "in"))
            continue
        if work is not None and work.get(value):
            flow.add_edge(_SOURCE, (value, "in"), capacity=work[value])
        for one in needs[value]:
            flow.add_edge((one, "out"), (value, "in"))
            pending.append(one)
    _, (before, after) = nx.minimum_cut(flow, _SOURCE, _SINK)
    return frozenset(value for value in seen if (value, "in") in before and (value, "out") in after)


_SOURCE, _SINK = "what cannot be computed", "what is wanted"
