"""Operation names in any dialect, and fast traversals of blocks and nested operations.

xDSL's `walk` nests a generator for each region, which is slow in deep modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation


def name_of(op: Operation) -> str:
    """Return the name of the operation, even if its dialect is not registered."""
    # This is called for every operation, and `isinstance` is several times slower for an abstract class.
    return cast(UnregisteredOp, op).op_name.data if op.name == UnregisteredOp.name else op.name


def check_operation_name(name: object) -> None:
    """Check that the name of an operation contains a dialect.

    Raises:
        ValueError: `name` is not a string such as `acme.swish`.
    """
    if not isinstance(name, str) or not all(name.partition(".")):
        raise ValueError(f"name: expected a name such as 'acme.swish', not {name!r}")


def is_private(function: FuncOp) -> bool:
    """Return whether the function can be called only from its own module."""
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def terminator_of(block: Block) -> Operation:
    """Return the last operation of a block. The verifier ensures that blocks in regions are not empty."""
    assert block.last_op is not None, "verified: a block ends with a terminator"
    return block.last_op


def block_of(op: Operation) -> Block:
    """Return the block that contains the operation. The operation must be neither detached nor a top-level module."""
    assert op.parent is not None, "the operation stands in a block"
    return op.parent


def root_of(op: Operation) -> Operation:
    """Return the outermost operation that contains the operation, or the operation itself if none contains it."""
    while (parent := op.parent_op()) is not None:
        op = parent
    return op


def operations_around(op: Operation) -> Iterator[Operation]:
    """Yield the operations that contain the operation, from the inside out."""
    around = op.parent_op()
    while around is not None:
        yield around
        around = around.parent_op()


def operations_in(block: Block) -> list[Operation]:
    """Return the operations of a block. This is faster than `list(block.ops)`, which traverses the block twice."""
    operations, op = list[Operation](), block.first_op
    while op is not None:
        operations.append(op)
        op = op._next_op  # pyright: ignore[reportPrivateUsage]
    return operations


def every_operation(root: Operation) -> list[Operation]:
    """Return the operation and all operations nested in it, in pre-order."""
    operations = [root]
    if root.regions:
        _append_nested(root, operations)
    return operations


def _append_nested(op: Operation, operations: list[Operation]) -> None:
    for region in op.regions:
        for block in region.blocks:
            inner = block.first_op
            while inner is not None:
                operations.append(inner)
                if inner.regions:
                    _append_nested(inner, operations)
                # The property `next_op` would be slower, and this line runs dozens of times for every operation.
                inner = inner._next_op  # pyright: ignore[reportPrivateUsage]
