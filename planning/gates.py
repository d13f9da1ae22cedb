"""Find the gates of copies: the cotangents that copies wait for, so that they do not run in the forward pass.

A gate is a gradient value that is defined before the copies and is not computed from constants alone. Since a gate
precedes the copies in program order, waiting for it cannot create a cycle. A gate must not be available too early. A
gradient operation that reads only values of the segment, or earlier values, could run in the forward pass, together
with the copies that wait for it. The choice follows `jax.checkpoint`, whose barrier takes the incoming cotangents and
all inputs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Set

from .graph import Graph


def gates_for(
    graph: Graph, values: Iterable[int], readers: Iterable[int], before: int, chain: bool = False
) -> tuple[int, ...]:
    """Return the gates for copies.

    Args:
        graph: The graph of the step.
        values: The recomputed values.
        readers: The gradient operations that read the copies.
        before: The operation before which the copies are inserted.
        chain: Whether the copies also wait for the last gradient value before them.

    Returns:
        The cotangents that the readers depend on and that are defined after the values. If there are no such
        cotangents, the last gradient value before the copies. If no gradient value depends on the forward pass, the
        gradient values that depend on cotangent arguments. Empty if no value can delay the copies.
    """
    after = max((graph.maker[value] for value in values), default=-1)
    leading = find_gates(graph, readers, after, before)
    waiting = tuple([value for value in leading if _is_available_after(graph, value, after)])
    latest = _latest_gate(graph, after, before) if chain or not waiting else None
    if latest is not None and latest not in waiting:
        return (*waiting, latest)
    return waiting or tuple([value for value in leading if graph.maker[value] in graph.needs_cotangent])


def find_gates(graph: Graph, readers: Iterable[int], after: int, before: int) -> tuple[int, ...]:
    """Return the gradient values that are defined before the copies and that the readers depend on, directly or through
    gradient operations after the copies.

    Args:
        graph: The graph of the step.
        readers: The gradient operations that read the copies.
        after: The operation after which gates must be defined: values of an earlier gradient would not delay the
            copies.
        before: The operation before which the copies are inserted.
    """
    gates = dict[int, None]()
    visited, stack = set[int](), list(readers)
    while stack:
        op = stack.pop()
        if op in visited:
            continue
        visited.add(op)
        for value in graph.reads[op]:
            maker = graph.maker[value]
            if maker < 0 or not graph.gradient[maker]:
                continue
            if maker >= before:
                stack.append(maker)
            elif maker > after and is_gate(graph, value):
                gates[value] = None
    return tuple(sorted(gates, key=graph.maker.__getitem__))


def expandable_gradients(graph: Graph) -> frozenset[int]:
    """Return the gradient values that take more bytes than their gradient operands, and that a compiler fuses into
    their only reader. These values are sums of padded values: the gradients of slices."""
    expandable, source_bytes = set[int](), list(graph.sizes)
    for op, results in enumerate(graph.makes):
        if not graph.gradient[op] or len(results) != 1 or len(graph.readers[results[0]]) != 1:
            continue
        value = results[0]
        sources = _gradient_operands(graph, value)
        total = sum(source_bytes[source] for source in sources)
        if sources and graph.flops[op] <= graph.sizes[value] and total < graph.sizes[value]:
            expandable.add(value)
            source_bytes[value] = total
    return frozenset(expandable)


def _gradient_operands(graph: Graph, value: int) -> list[int]:
    """Return the gradient values among the operands of the operation that makes the value."""
    read = (operand for operand in graph.reads[graph.maker[value]] if operand not in graph.constants)
    return [operand for operand in read if graph.maker[operand] >= 0 and graph.gradient[graph.maker[operand]]]


def joining_gates(
    graph: Graph, readers: Collection[int], after: int, before: int, until: int, expandable: Set[int]
) -> tuple[int, ...]:
    """Return the cotangents that are defined before the copies and combined with the readers' results.

    A cotangent that passes through a barrier is stored. Otherwise XLA fuses the whole computation of the cotangent of a
    residual stream into each of its later readers, and keeps its operands live. If each block reads a slice of one
    parameter, the gradient of the parameter is a sum of padded values. The operands of this sum have fewer bytes, so
    they are stored instead of the sum.

    Args:
        graph: The graph of the step.
        readers: The gradient operations that read the copies.
        after: The operation after which the returned cotangents are defined and become available.
        before: The operation before which the copies are inserted.
        until: The operation before which the cotangents are combined.
        expandable: The values that are replaced by their parts (`expandable_gradients`).
    """
    dependents, cotangents = set(readers), list[int]()
    for op in range(before, until):
        makers = [graph.maker[value] for value in graph.reads[op]]
        if graph.gradient[op] and (op in dependents or not dependents.isdisjoint(makers)):
            dependents.add(op)
            cotangents += [
                value for value, maker in zip(graph.reads[op], makers, strict=True) if after < maker < before
            ]
    sources = dict.fromkeys(source for value in cotangents for source in _smallest_sources(graph, value, expandable))
    gates = [
        value
        for value in sources
        if after < graph.maker[value] < before and is_gate(graph, value) and _is_available_after(graph, value, after)
    ]
    return tuple(sorted(gates, key=graph.maker.__getitem__))


MAX_SUMMANDS = 48
"""Maximum number of sums and paddings that are expanded to find the parts of a gradient. Earlier tokens already store
older parts, and values that are not expanded are stored as they are."""


def _smallest_sources(graph: Graph, value: int, expandable: Set[int]) -> list[int]:
    """Return the values to store in place of `value`. An expandable value is replaced by its parts, which take fewer
    bytes and from which a compiler recomputes the value in a fused reader. Any other value is returned unchanged."""
    leaves, pending = list[int](), deque([value])
    for _ in range(MAX_SUMMANDS):
        if not pending:
            break
        current = pending.popleft()
        if current in expandable:
            pending.extend(_gradient_operands(graph, current))
        else:
            leaves.append(current)
    return leaves


def is_gate(graph: Graph, value: int) -> bool:
    """Return whether the value can be a gate: a gradient value that the backward pass itself computes, and that is
    neither a constant nor a delayed forward value."""
    maker = graph.maker[value]
    return (
        maker >= 0
        and graph.gradient[maker]
        and value not in graph.constants
        and maker not in graph.copies
        and not _delays_forward_value(graph, value)
    )


def can_delay(graph: Graph, gates: Iterable[int], values: Iterable[int]) -> bool:
    """Return whether one of the gates delays the copies. Such a gate depends on a cotangent argument, or on a forward
    operation that follows all copied values.

    Args:
        graph: The graph of the step.
        gates: The gates of the copies.
        values: The copied values.
    """
    after = max(graph.maker[value] for value in values)
    return any(graph.maker[gate] in graph.needs_cotangent or _is_available_after(graph, gate, after) for gate in gates)


def _is_available_after(graph: Graph, value: int, after: int) -> bool:
    """Return whether the value depends on a forward operation after the operation `after`."""
    return graph.available_after[graph.maker[value]] > after


def _latest_gate(graph: Graph, after: int, before: int) -> int | None:
    """Return the last gate that is defined between the two operations; None if there is none. Waiting for it preserves
    program order.

    The gate has readers from `before` on, because compilers remove a barrier whose result for the gate is unused.
    """
    for op in range(before - 1, after, -1):
        for value in graph.makes[op] if graph.gradient[op] else ():
            is_read = any(reader >= before for reader in graph.readers[value])
            if is_read and is_gate(graph, value) and _is_available_after(graph, value, after):
                return value
    return None


def _delays_forward_value(graph: Graph, value: int) -> bool:
    """Return whether the value is a delayed forward value: the result of a barrier or of a `depend` operation that an
    earlier run of the passes inserted."""
    maker = graph.maker[graph.root[value]]
    return maker < 0 or graph.forward[maker]
