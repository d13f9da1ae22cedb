"""Operations of any dialect: the name of one, and all below one, in a list.

xDSL's `walk` is a generator in a generator for each region, which is slow.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation


def name_of(op: Operation) -> str:
    # Not by `isinstance`, which is several times slower for an abstract class; this is called for every operation.
    return cast(UnregisteredOp, op).op_name.data if op.name == UnregisteredOp.name else op.name


def every_operation(root: Operation) -> list[Operation]:
    """Return the operation and all inside of it, in the order in which they are printed."""
    operations = [root]
    if root.regions:
        _collect(root, operations)
    return operations


def _collect(op: Operation, operations: list[Operation]) -> None:
    for region in op.regions:
        for block in region.blocks:
            inner = block.first_op
            while inner is not None:
                operations.append(inner)
                if inner.regions:
                    _collect(inner, operations)
                # Not by the property `next_op`: this loop runs for every operation, dozens of times.
                inner = inner._next_op  # pyright: ignore[reportPrivateUsage]
