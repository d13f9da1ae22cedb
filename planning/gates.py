"""What copies wait for: the cotangents that have arrived when their first reader runs.

A gate is a gradient value, not made from constants alone, that is defined before the copies: program order then rules
out cycles. And it must not be there too early: a gradient operation that reads nothing but the segment's own values, or
earlier ones, could run in the forward pass, and the copies with it. Source of the choice: jax.checkpoint, whose barrier
holds the incoming cotangents and all inputs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from .graph import Graph


def gates_for(
    graph: Graph, values: Iterable[int], readers: Iterable[int], before: int, chain: bool = False
) -> tuple[int, ...]:
    """The cotangents that lead to the readers of the recomputed `values`, and come after these.

    Where there are none, or in a `chain`, what the gradient made last; where the forward pass does not hold the
    gradient back at all, the cotangents that are given as arguments.
    """
    after = max((graph.maker[value] for value in values), default=-1)
    leading = find_gates(graph, readers, after, before)
    found = tuple([value for value in leading if _waits(graph, value, after)])
    latest = _latest_gate(graph, after, before) if chain or not found else None
    if latest is not None and latest not in found:
        return (*found, latest)
    return found or tuple([value for value in leading if graph.maker[value] in graph.needs_cotangent])


def find_gates(graph: Graph, readers: Iterable[int], after: int, before: int) -> tuple[int, ...]:
    """Gradient values from before the copies that lead to the readers through gradient operations behind them.

    Those from before the operation `after`, of an earlier gradient, are there already and hold nothing back.
    """
    gates = dict[int, None]()
    seen, stack = set[int](), list(readers)
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        for value in graph.reads[op]:
            maker = graph.maker[value]
            if maker < 0 or not graph.gradient[maker]:
                continue
            if maker >= before:
                stack.append(maker)
            elif maker > after and is_gate(graph, value):
                gates[value] = None
    return tuple(sorted(gates, key=graph.maker.__getitem__))


def joining(graph: Graph, readers: Collection[int], after: int, before: int, until: int) -> tuple[int, ...]:
    """Cotangents from before the copies that later join what their readers make, up to the operation `until`.

    As they pass the token they are stored there. Else XLA computes the cotangent of a residual stream inside of each
    of its later readers, all the way back, and keeps what it is made of. A sum of padded values, the gradient of one
    parameter of which each block reads a slice, is made of fewer bytes than it has: they are stored in its place.
    """
    gates, behind = dict[int, None](), set(readers)
    for op in range(before, until):
        if not graph.gradient[op]:
            continue
        makers = [graph.maker[value] for value in graph.reads[op]]
        if op in behind or not behind.isdisjoint(makers):
            behind.add(op)
            joined = [value for value, maker in zip(graph.reads[op], makers, strict=True) if after < maker < before]
            gates.update(
                (value, None)
                for one in joined
                for value in _smallest_source(graph, one)
                if after < graph.maker[value] < before and is_gate(graph, value) and _waits(graph, value, after)
            )
    return tuple(sorted(gates, key=graph.maker.__getitem__))


MOST_SUMMANDS = 48
"""Limit on the sums and paddings that are expanded to find the parts of a gradient: older parts have passed earlier
tokens."""


def _smallest_source(graph: Graph, value: int) -> list[int]:
    """The value, or the newest parts that a compiler computes it from within the operation that reads it, if these are
    smaller together."""
    leaves, pending = list[int](), deque([value])
    for _ in range(MOST_SUMMANDS):
        if not pending:
            break
        one = pending.popleft()
        if one in graph.made_of_less:
            pending.extend(graph.gradient_sources(one))
        else:
            leaves.append(one)
    return leaves


def is_gate(graph: Graph, value: int) -> bool:
    """Whether a value can only exist once the backward pass has come to it."""
    maker = graph.maker[value]
    return (
        maker >= 0
        and graph.gradient[maker]
        and value not in graph.constants
        and maker not in graph.copies
        and not _delays_forward_value(graph, value)
    )


def hold_back(graph: Graph, gates: Iterable[int], values: Iterable[int]) -> bool:
    """Whether one of the gates comes after all of the values, or needs a cotangent from outside."""
    after = max(graph.maker[value] for value in values)
    return any(graph.maker[gate] in graph.needs_cotangent or _waits(graph, gate, after) for gate in gates)


def _waits(graph: Graph, value: int, after: int) -> bool:
    """Whether the value cannot be there before the forward pass has gone on, past the operation `after`."""
    return graph.known_after[graph.maker[value]] > after


def _latest_gate(graph: Graph, after: int, before: int) -> int | None:
    """The gradient value that is made last between the two operations: to wait for it is to keep program order.

    Somebody behind them reads it: a barrier of which nobody reads the gradient's leg is taken apart by compilers.
    """
    for op in range(before - 1, after, -1):
        if graph.gradient[op]:
            for value in graph.makes[op]:
                is_read = any(reader >= before for reader in graph.readers[value])
                if is_read and is_gate(graph, value) and _waits(graph, value, after):
                    return value
    return None


def _delays_forward_value(graph: Graph, value: int) -> bool:
    """A barrier or a depend of an earlier run stands in the backward pass, but hands on a forward value."""
    maker = graph.maker[graph.root[value]]
    return maker < 0 or graph.forward[maker]
