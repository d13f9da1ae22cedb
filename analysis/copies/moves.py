"""Operations outside of every segment that only the backward pass reads: where it saves bytes, they move there.

Masks and local derivatives are computed in forward time, next to the operation that they belong to. A copy behind a
gradient takes their place and the original, which nobody reads any more, vanishes: no arithmetic is added. That a
comparison, say, would pin its big operand in place of its small result is for the caller to see from the bytes.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import Operation

from ...rules.effects import why_impure
from ...rules.kinds import is_constant
from ..order import producers
from ..step import Step


def movable(step: Step, taken: Collection[Operation]) -> list[list[Operation]]:
    """Groups of operations, each in program order, whose results only gradient operations and the group read.

    Operations that are `taken`, by a segment or by a mark, stay where they are.
    """
    order, phases = step.phases.order, step.phases
    found = set[Operation]()
    for op in reversed(order.operations):
        if not phases.is_forward(op) or op in taken or is_constant(op) or why_impure(op) is not None:
            continue
        readers = [reader for result in op.results for reader in order.readers(result)]
        constant = all(result in step.constants for result in op.results)
        if readers and not constant and all(phases.is_gradient(reader) or reader in found for reader in readers):
            found.add(op)
    return _connected([op for op in order.operations if op in found])


def _connected(operations: Collection[Operation]) -> list[list[Operation]]:
    """Operations that read each other, together."""
    group = {op: [op] for op in operations}
    for op in operations:
        for producer in producers(op):
            if producer in group and group[producer] is not group[op]:
                joined = group[producer] + group[op]
                group.update(dict.fromkeys(joined, joined))
    position = {op: index for index, op in enumerate(operations)}
    distinct = {id(members): members for members in group.values()}
    return [sorted(members, key=position.__getitem__) for members in distinct.values()]
