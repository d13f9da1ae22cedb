"""Operations outside of every segment that only the backward pass reads: where it saves bytes, they move there.

Masks and local derivatives are computed in forward time, next to the operation that they belong to. A copy behind a
gradient takes their place and the original, which nobody reads any more, vanishes: no arithmetic is added. That a
comparison, say, would pin its big operand in place of its small result is for the caller to see from the bytes.
"""

from __future__ import annotations

from collections.abc import Collection

from ..graph import Graph


def sinkable(graph: Graph, taken: Collection[int]) -> list[list[int]]:
    """Groups of operations, each in program order, whose results only gradient operations and the group read.

    Operations that are `taken`, by a segment or by a mark, stay where they are.
    """
    found = set[int]()
    for op in reversed(range(len(graph))):
        if not graph.forward[op] or op in taken or op in graph.literals or graph.effects[op] is not None:
            continue
        readers = [reader for value in graph.makes[op] for reader in graph.readers[value]]
        constant = all(value in graph.constants for value in graph.makes[op])
        if readers and not constant and all(graph.gradient[reader] or reader in found for reader in readers):
            found.add(op)
    return _connected(graph, sorted(found))


def _connected(graph: Graph, operations: Collection[int]) -> list[list[int]]:
    """Operations that read each other, together."""
    group = {op: [op] for op in operations}
    for op in operations:
        for producer in graph.producers[op]:
            if producer in group and group[producer] is not group[op]:
                joined = group[producer] + group[op]
                group.update(dict.fromkeys(joined, joined))
    distinct = {id(members): members for members in group.values()}
    return [sorted(members) for members in distinct.values()]
