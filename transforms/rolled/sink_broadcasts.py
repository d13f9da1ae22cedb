"""Sink broadcasts into the body of the loop that reads them. Outside the loop, their results would be live during the
whole loop.

    %m = broadcast_in_dim %row : 4x128x128                  while … do {
    while … do { … %m … }                             ->      %m = broadcast_in_dim %row; … }

XLA does not hoist the broadcasts again, because it never hoists operations whose results are larger than their
operands.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.step.order import captured_values
from ...analysis.step.views import value_bytes
from ...dialects.stablehlo.control import WhileOp
from ...support.operations import name_of, terminator_of

_SHAPES = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert"})


def sink_broadcasts(loop: WhileOp) -> None:
    """Sink each chain of shape operations into the body of the loop if its result is larger than its operand."""
    for outside, inside in list(_read_in_body(loop)):
        chain = _chain(outside)
        first = loop.body.block.first_op
        if not chain or first is None:
            continue
        mapping = dict[SSAValue, SSAValue]()
        copies = [op.clone(mapping) for op in chain]
        for copy in copies:
            # The copy runs in the loop, while the original may be in the forward pass.
            copy.location = loop.location
        Rewriter.insert_op(copies, InsertPoint.before(first))
        sunk = copies[-1].results[0]
        inside.replace_uses_with_if(sunk, lambda use: _is_read_in(loop, use.operation))


def _read_in_body(loop: WhileOp) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Yield each loop-invariant value as a pair: the value outside the loop, and the value that the body reads."""
    block = loop.body.block
    last = terminator_of(loop.body.block)
    for index, argument in enumerate(block.args):
        if last.operands[index] is argument:
            yield loop.operands[index], argument
    yield from ((value, value) for value in captured_values(loop))


def _is_read_in(loop: WhileOp, op: Operation) -> bool:
    """Return whether the operation is in the body, at any depth, and is not its terminator."""
    current: Operation | None = op
    while current is not None and current.parent is not loop.body.block:
        current = current.parent_op()
    return current is not None and current is not loop.body.block.last_op


def _chain(value: SSAValue) -> list[Operation]:
    """Return the reshapes, broadcasts and casts that compute the value from the smallest operand, in program order.

    The result is empty if no operand in the chain is smaller than the value.
    """
    chain = list[Operation]()
    smallest = value_bytes(value)
    best = 0
    while isinstance(value, OpResult) and name_of(value.op) in _SHAPES:
        chain.append(value.op)
        value = value.op.operands[0]
        if value_bytes(value) < smallest:
            smallest, best = value_bytes(value), len(chain)
    return chain[:best][::-1]
