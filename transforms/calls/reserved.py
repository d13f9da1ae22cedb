"""Keep calls of functions with reserved names adjacent to the operations that XLA requires next to them.

    %1 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%0)      %1 = stablehlo.custom_call @xla.sdy.Global…(%0)
    %2 = call @xla.sdy.manual_computation_body(%1)                  %2 = call @xla.sdy.manual_computation_body(%1)
    %3 = stablehlo.multiply …                                ->     %5 = stablehlo.custom_call @xla.sdy.Local…(%2)
    %5 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%2)      %3 = stablehlo.multiply …

Copies wait for the last value of the gradient. If that value were a result of the call, a barrier would be inserted
between the call and its reader, where XLA's `shard_map_import.cc` allows no other operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeGuard

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation

from ...dialects.reserved_names import is_reserved
from ...dialects.stablehlo.custom_call import CustomCallOp
from ...rules.effects import why_impure
from ...support.operations import every_operation

BEFORE, AFTER = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"


def move_next_to_reserved_calls(module: ModuleOp) -> None:
    """Move operations next to the call of a reserved function if XLA requires them there, but never past an operation
    with effects.

    The module is changed in place.
    """
    for call in every_operation(module):
        if not isinstance(call, CallOp) or not is_reserved(call.callee.string_value()):
            continue
        for op in {value.owner for value in call.operands}:
            if _is_neighbour(op, BEFORE) and _reads_only(call, op) and _may_pass(_between(op, call)):
                _move(op, call)
        for op in {use.operation for result in call.results for use in result.uses}:
            if _is_neighbour(op, AFTER) and _reads_only(op, call) and _may_pass(_between(call, op)):
                _move(op, call.next_op)


def _is_neighbour(op: Operation | Block, target: str) -> TypeGuard[CustomCallOp]:
    return isinstance(op, CustomCallOp) and op.call_target_name.data == target


def _reads_only(reader: Operation, op: Operation) -> bool:
    """Return whether the reader reads only results of `op`, and is their only reader."""
    return all(value.owner is op for value in reader.operands) and all(
        use.operation is reader for result in op.results for use in result.uses
    )


def _may_pass(operations: Iterable[Operation]) -> bool:
    return all(why_impure(op) is None for op in operations)


def _between(first: Operation, last: Operation) -> Iterator[Operation]:
    """Yield the operations between two operations of one block."""
    op = first.next_op
    while op is not None and op is not last:
        yield op
        op = op.next_op


def _move(op: Operation, before: Operation | None) -> None:
    if before is not None and before is not op and before.parent is op.parent and before.parent is not None:
        op.detach()
        before.parent.insert_ops_before([op], before)
