"""Find operations to sink into the backward pass: operations outside segments with results that only the backward pass
reads.

For example, masks and local derivatives are computed in the forward pass, next to their primal operation. A copy in the
backward pass replaces the original, which becomes dead, so no arithmetic is added. The caller must check that sinking
frees memory: for example, sinking a comparison pins its large operand instead of its small result.
"""

from __future__ import annotations

from collections.abc import Collection

from ..graph import Graph


def sinkable_groups(graph: Graph, excluded_operations: Collection[int]) -> list[list[int]]:
    """Return groups of sinkable operations. The results of a group are read only by gradient operations and within the
    group.

    Args:
        graph: The graph of the step.
        excluded_operations: Operations in a segment or with a mark. No group contains them.

    Returns:
        The connected groups, each in program order.
    """
    sunk = set[int]()
    for op in reversed(range(len(graph))):
        if not graph.forward[op] or op in excluded_operations or op in graph.literals or graph.effects[op] is not None:
            continue
        readers = [reader for value in graph.makes[op] for reader in graph.readers[value]]
        is_constant = all(value in graph.constants for value in graph.makes[op])
        if readers and not is_constant and all(graph.gradient[reader] or reader in sunk for reader in readers):
            sunk.add(op)
    return _components(graph, sorted(sunk))


def _components(graph: Graph, operations: Collection[int]) -> list[list[int]]:
    """Return the connected components of the operations under use-def edges."""
    component = {op: [op] for op in operations}
    for op in operations:
        for producer in graph.producers[op]:
            if producer in component and component[producer] is not component[op]:
                joined = component[producer] + component[op]
                component.update(dict.fromkeys(joined, joined))
    distinct = {id(members): members for members in component.values()}
    return [sorted(members) for members in distinct.values()]
