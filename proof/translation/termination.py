"""Prove that loops terminate. A loop terminates if its condition compares a counter with a bound that the counter must
reach."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...dialects.stablehlo.attributes import ComparisonDirection
from ...support.operations import name_of
from ...support.type_guards import is_integer_type, is_tensor
from ..expressions.conditions import integer_elements
from ..operations.comparisons import direction_of
from ..operations.operation_parts import attributes_of


def why_endless(op: Operation) -> str | None:
    """Return the reason why a loop is not known to terminate, or None for a terminating loop or any other operation."""
    match name_of(op):
        case "stablehlo.while":
            return None if _counts_to_bound(op) else "it does not provably count towards a bound"
        case "scf.while":
            return "it does not provably count towards a bound"
        case _:
            return None


def _counts_to_bound(op: Operation) -> bool:
    """Return whether a `stablehlo.while` provably terminates: its condition requires a comparison that bounds a
    counter."""
    if len(op.regions) != 2 or any(len(region.blocks) != 1 for region in op.regions):
        return False
    cond, body = (region.blocks[0] for region in op.regions)
    if cond.last_op is None or len(cond.last_op.operands) != 1:
        return False
    return any(_limits_iterations(compare, cond, body) for compare in _conjuncts(cond.last_op.operands[0]))


def _conjuncts(value: SSAValue) -> Iterator[Operation]:
    """Yield comparisons that are all true whenever the value is true."""
    pending = [value]
    while pending:
        op = pending.pop().owner
        if not isinstance(op, Operation):
            continue
        if name_of(op) == "stablehlo.and":
            pending.extend(op.operands)
        elif name_of(op) == "stablehlo.compare":
            yield op


def _limits_iterations(compare: Operation, cond: Block, body: Block) -> bool:
    """Return whether a comparison is true in only finitely many iterations.

    This is the case if an integer that increases by 1 must be less than an invariant bound, or an integer that
    decreases by 1 must be greater than an invariant bound. In steps of 1, the integer reaches the bound before it wraps
    around.
    """
    direction = direction_of(attributes_of(compare))
    if direction not in (ComparisonDirection.LT, ComparisonDirection.GT) or len(compare.operands) != 2:
        return False
    left, right = compare.operands
    toward_right, toward_left = "stablehlo.add", "stablehlo.subtract"
    if direction is ComparisonDirection.GT:
        toward_right, toward_left = toward_left, toward_right
    for counter, bound, operation in ((left, right, toward_right), (right, left, toward_left)):
        if counter.owner is cond and _is_invariant(bound, cond, body) and _is_stepped(counter, operation, cond, body):
            return True
    return False


def _is_invariant(bound: SSAValue, cond: Block, body: Block) -> bool:
    """Return whether a value in the condition is loop-invariant: defined outside the loop, a constant, or a carry that
    the body yields unchanged."""
    if bound.owner is cond:
        index = next(index for index, argument in enumerate(cond.args) if argument is bound)
        return body.last_op is not None and index < len(body.args) and body.last_op.operands[index] is body.args[index]
    if isinstance(bound.owner, Operation) and bound.owner.parent is cond:
        return name_of(bound.owner) == "stablehlo.constant"
    return True


def _is_stepped(counter: SSAValue, operation: str, cond: Block, body: Block) -> bool:
    """Return whether the body yields the counter plus or minus 1.

    `operation`: `stablehlo.add` or `stablehlo.subtract`.
    """
    index = next(index for index, argument in enumerate(cond.args) if argument is counter)
    if body.last_op is None or index >= len(body.args) or index >= len(body.last_op.operands):
        return False
    following, argument = body.last_op.operands[index], body.args[index]
    if not isinstance(following, OpResult) or name_of(following.op) != operation:
        return False
    if not (is_tensor(argument.type) and is_integer_type(argument.type.element_type)):
        return False
    left, right = following.op.operands
    return (left is argument and _is_one(right)) or (
        operation == "stablehlo.add" and right is argument and _is_one(left)
    )


def _is_one(value: SSAValue) -> bool:
    if not isinstance(value, OpResult) or name_of(value.op) != "stablehlo.constant":
        return False
    constant = attributes_of(value.op).get("value")
    elements = None if constant is None else integer_elements(constant)
    return elements is not None and bool(np.all(elements == 1))
