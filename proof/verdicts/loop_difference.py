"""Describe the difference between two loops, to explain why a proof failed.

    the loops at a.mlir:6:10 and b.mlir:6:10 count differently: before i = 0; i < 8; i += 1 (8 iterations), after …

Only messages use the result: an error here can mislead a reader, but cannot change a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...dialects.stablehlo.attributes import ComparisonDirection
from ...support.counted import counted
from ...support.operations import every_operation, name_of, root_of
from ..expressions.conditions import integer_elements
from ..operations.comparisons import direction_of
from ..operations.operation_parts import attributes_of
from .operation_positions import describe_position, with_position

WHILE = "stablehlo.while"
COUNT_DIFFERENTLY = "count differently"
_RELATIONS = {
    ComparisonDirection.LT: "<",
    ComparisonDirection.LE: "<=",
    ComparisonDirection.GT: ">",
    ComparisonDirection.GE: ">=",
    ComparisonDirection.EQ: "==",
    ComparisonDirection.NE: "!=",
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FORWARDING = frozenset({"stablehlo.optimization_barrier", "recompute.depend"})
"""Operations whose result i equals their operand i."""
_NOT_COMPARED = _FORWARDING | {"stablehlo.constant"}
"""Operations that passes add to loop bodies or move within them."""


@dataclass(frozen=True)
class LoopCount:
    """The counter of a `stablehlo.while`.

    Attributes:
        start: The initial value of the counter; None if this value is not a constant.
        relation: The relation between counter and limit while the loop runs, such as `<`.
        limit: The limit; None if the limit is not a constant.
        step: The constant that each iteration adds to the counter; None if the loop changes the counter in a different
            way.
    """

    start: int | None
    relation: str
    limit: int | None
    step: int | None

    @property
    def iterations(self) -> int | None:
        """The number of iterations; None if it is unknown."""
        if self.start is None or self.limit is None or not self.step:
            return None
        numbers = {
            "<": range(self.start, self.limit, self.step) if self.step > 0 else None,
            "<=": range(self.start, self.limit + 1, self.step) if self.step > 0 else None,
            ">": range(self.start, self.limit, self.step) if self.step < 0 else None,
            ">=": range(self.start, self.limit - 1, self.step) if self.step < 0 else None,
        }.get(self.relation)
        return None if numbers is None else len(numbers)

    def __str__(self) -> str:
        start, limit = ("?" if number is None else str(number) for number in (self.start, self.limit))
        step = "i changes" if self.step is None else f"i {'-' if self.step < 0 else '+'}= {abs(self.step)}"
        iterations = self.iterations
        total = "" if iterations is None else f" ({counted(iterations, 'iteration')})"
        return f"i = {start}; i {self.relation} {limit}; {step}{total}"


def loop_difference(before: Operation, after: Operation) -> str:
    """Return a phrase that describes the first difference between the loops of two programs; "" if none is found.

    The counters of all pairs of loops are compared first, because a difference often begins in a loop that writes the
    stacks that `before` and `after` read. Then the carries and bodies of `before` and `after` are compared.
    """
    for a, b in _pairs(before, after):
        counts = count_of(a), count_of(b)
        if None not in counts and counts[0] != counts[1]:
            return f"the loops{_positions(a, b)} {COUNT_DIFFERENTLY}: before {counts[0]}, after {counts[1]}"
    parts = list[str]()
    if len(before.operands) != len(after.operands):
        carries = f"before {counted(len(before.operands), 'carry', 'carries')}, after {len(after.operands)}"
        parts.append(f"the loops{_positions(before, after)} differ: {carries}")
    if (operations := _first_operations(before, after)) is not None:
        parts.append(f"the first operations that differ in their bodies: before {operations[0]}, after {operations[1]}")
    return "; ".join(parts)


def _pairs(before: Operation, after: Operation) -> Iterator[tuple[Operation, Operation]]:
    """Yield the two loops. If both programs have the same number of loops, also yield all their loops in pairs."""
    yield before, after
    loops = [
        [op for op in every_operation(root_of(loop)) if name_of(op) == WHILE and len(op.regions) == 2]
        for loop in (before, after)
    ]
    if len(loops[0]) == len(loops[1]):
        yield from zip(*loops, strict=True)


def _positions(before: Operation, after: Operation) -> str:
    positions = describe_position(before), describe_position(after)
    return f" at {positions[0]} and {positions[1]}" if all(positions) else ""


def _first_operations(before: Operation, after: Operation) -> tuple[str, str] | None:
    """Return the names and positions of the first pair of body operations with different names; None if all names
    agree."""
    bodies = [
        [op for region in loop.regions[-1:] for op in region.walk() if name_of(op) not in _NOT_COMPARED]
        for loop in (before, after)
    ]
    for a, b in zip(*bodies, strict=False):
        if name_of(a) != name_of(b):
            return with_position(a, name_of(a)), with_position(b, name_of(b))
    return None


def count_of(loop: Operation) -> LoopCount | None:
    """Return the counter of a `stablehlo.while`; None if its condition does not compare a carry."""
    if name_of(loop) != WHILE or len(loop.regions) != 2 or any(len(region.blocks) != 1 for region in loop.regions):
        return None
    cond, body = (region.blocks[0] for region in loop.regions)
    if cond.last_op is None or body.last_op is None or len(cond.last_op.operands) != 1:
        return None
    compare = cond.last_op.operands[0].owner
    if not isinstance(compare, Operation) or name_of(compare) != "stablehlo.compare" or len(compare.operands) != 2:
        return None
    direction = direction_of(attributes_of(compare))
    if direction is None:
        return None
    left, right = compare.operands
    relation = _RELATIONS[direction]
    for counter, limit, relates in ((left, right, relation), (right, left, _FLIPPED.get(relation, relation))):
        index = _index(counter, cond)
        if index is not None and index < len(body.args) and body.last_op.operands[index] is not body.args[index]:
            step = _step(body.last_op.operands[index], body.args[index], loop)
            return LoopCount(_integer(loop.operands[index], None), relates, _integer(limit, loop), step)
    return None


def _index(value: SSAValue, block: Block) -> int | None:
    return next((index for index, argument in enumerate(block.args) if argument is value), None)


def _step(following: SSAValue, argument: SSAValue, loop: Operation) -> int | None:
    """Return the constant that each iteration adds to a carry; None if the iteration changes the carry in a different
    way.
    """
    if not isinstance(following, OpResult) or len(following.op.operands) != 2:
        return None
    left, right = following.op.operands
    match name_of(following.op):
        case "stablehlo.add":
            return _integer(right, loop) if left is argument else _integer(left, loop) if right is argument else None
        case "stablehlo.subtract" if left is argument and (step := _integer(right, loop)) is not None:
            return -step
        case _:
            return None


def _integer(value: SSAValue, loop: Operation | None) -> int | None:
    """Return the value of a scalar integer constant, looking through barriers and invariant carries of the loop, or
    None for any other value."""
    while True:
        if isinstance(value, OpResult):
            if name_of(value.op) not in _FORWARDING or value.index >= len(value.op.operands):
                break
            value = value.op.operands[value.index]
        elif loop is not None and (carry := _invariant_carry(value, loop)) is not None:
            value, loop = carry, None
        else:
            return None
    constant = attributes_of(value.op).get("value") if name_of(value.op) == "stablehlo.constant" else None
    elements = None if constant is None else integer_elements(constant)
    return int(elements.reshape(-1)[0]) if elements is not None and elements.size == 1 else None


def _invariant_carry(value: SSAValue, loop: Operation) -> SSAValue | None:
    """Return the initial value of a carry if each iteration yields the carry unchanged, else None.

    `value`: the region argument that represents the carry.
    """
    body = loop.regions[1].blocks[0]
    for region in loop.regions:
        index = _index(value, region.blocks[0])
        if index is not None and body.last_op is not None and index < len(loop.operands):
            return loop.operands[index] if body.last_op.operands[index] is body.args[index] else None
    return None
