"""Counted loops: loops whose counter starts at a constant, grows by one, and ends the loop at a constant.

    %n, %r = stablehlo.while(%i = 0, %x = %a) cond { %i < 8 } do { …; return %i + 1, … }

`lax.scan` and `lax.fori_loop` lower to such loops. Iterations are numbered from 0 to `trips` - 1. A value that the loop
computes from its counter by adding and subtracting constants is `scale * number + offset`, an `Affine`. Sharding
constraints on these scalars, which JAX writes for a mesh with explicit axes, are treated as their operands.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects.constants.dense import DenseAttr, to_numpy
from ...dialects.names import Names
from ...dialects.sdy.sharding_ops import ShardingConstraintOp
from ...dialects.stablehlo.checks import element_of, shape_of
from ...dialects.stablehlo.compare_select import CompareOp
from ...dialects.stablehlo.control import WhileOp
from ...dialects.stablehlo.creation import ConstantOp
from ...support.operations import name_of, terminator_of
from ...support.type_guards import is_unsigned

MAX_COUNTER = 2**31 - 1
"""The bound on counters and on the values computed from them. Counters are integers of at least 32 bits."""


@dataclass(frozen=True)
class Affine:
    """An affine function of the iteration number: `scale * number + offset`."""

    scale: int
    offset: int

    def __add__(self, other: Affine) -> Affine:
        return Affine(self.scale + other.scale, self.offset + other.offset)

    def __sub__(self, other: Affine) -> Affine:
        return Affine(self.scale - other.scale, self.offset - other.offset)

    def value_at(self, number: int) -> int:
        """Return the value of the affine function in iteration `number`."""
        return self.scale * number + self.offset

    def covers(self, trips: int) -> bool:
        """Return whether the function takes each value from 0 to `trips` - 1 exactly once in `trips` iterations."""
        return abs(self.scale) == 1 and min(self.value_at(0), self.value_at(trips - 1)) == 0


@dataclass(frozen=True)
class CountedLoop:
    """A loop that runs a known number of times.

    Attributes:
        op: The operation.
        counter: The index of the carry that has the value `start + number` in iteration `number`.
        start: The initial value of the counter.
        trips: The trip count, at least 1.
    """

    op: WhileOp
    counter: int
    start: int
    trips: int

    @property
    def block(self) -> Block:
        return self.op.body.block

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The values that the body yields to the next iteration."""
        last = terminator_of(self.block)
        return tuple(last.operands)

    @property
    def is_bare(self) -> bool:
        """Whether neither the loop nor the terminators of its regions have attributes of other dialects."""
        ends = (region.block.last_op for region in self.op.regions)
        return is_bare(self.op) and all(end is None or is_bare(end) for end in ends)

    def is_invariant(self, index: int) -> bool:
        """Return whether the loop carries the value with this index unchanged."""
        return self.yielded[index] is self.block.args[index]

    def affine(self, value: SSAValue) -> Affine | None:
        """Return the value as an affine function of the iteration number, or None if it is not known to be affine."""
        value = _unconstrained(value)
        if value is self.block.args[self.counter]:
            return Affine(1, self.start)
        if isinstance(value, BlockArgument):
            index = value.index
            is_own = value.block is self.block and self.is_invariant(index)
            return self.affine(self.op.operands[index]) if is_own else None
        if (number := scalar_integer(value)) is not None:
            return Affine(0, number)
        return self._affine_result(value.op) if isinstance(value, OpResult) else None

    def _affine_result(self, op: Operation) -> Affine | None:
        name = name_of(op)
        if (
            op.parent is not self.block
            or name not in _LINEAR
            or not is_bare(op)
            or not all(map(_is_index, [*op.operands, *op.results]))
        ):
            return None
        parts = [part for operand in op.operands if (part := self.affine(operand)) is not None]
        if len(parts) < len(op.operands):
            return None
        if name == "stablehlo.convert":
            signs = {is_unsigned(element_of(value)) for value in (*op.operands, *op.results)}
            return parts[0] if len(signs) == 1 or self._is_never_negative(parts[0]) else None
        result = parts[0] + parts[1] if name == "stablehlo.add" else parts[0] - parts[1]
        return result if all(abs(result.value_at(number)) <= MAX_COUNTER for number in (0, self.trips - 1)) else None

    def _is_never_negative(self, index: Affine) -> bool:
        return all(index.value_at(number) >= 0 for number in (0, self.trips - 1))


_LINEAR = frozenset({"stablehlo.add", "stablehlo.subtract", "stablehlo.convert"})
"""The affine operations. The table is deliberately not shared with `proof/loop_rules/integers.py`, because the proof
must not rely on data of the passes."""


def _is_index(value: SSAValue) -> bool:
    element = element_of(value)
    return isinstance(element, IntegerType) and element.bitwidth >= 32 and shape_of(value) == ()


def is_bare(op: Operation) -> bool:
    """Return whether the operation has no attributes of other dialects.

    A rewrite would lose such attributes, and the proof rejects them.
    """
    return all(name.startswith(Names.PREFIX) for name in op.attributes)


def _unconstrained(value: SSAValue) -> SSAValue:
    """Return the value without sharding constraints, if it is a scalar integer."""
    while isinstance(value, OpResult) and isinstance(value.op, ShardingConstraintOp) and _is_index(value):
        value = value.op.input
    return value


def scalar_integer(value: SSAValue) -> int | None:
    """Return the value of a scalar integer constant; None for any other value."""
    value = _unconstrained(value)
    op = value.op if isinstance(value, OpResult) else None
    if not isinstance(op, ConstantOp) or not is_bare(op) or not isinstance(op.value, DenseAttr) or not _is_index(value):
        return None
    number = int(to_numpy(op.value).item())
    return number if abs(number) <= MAX_COUNTER else None


def counted_loop(op: Operation) -> CountedLoop | None:
    """Return the operation as a counted loop with at least one iteration, or None if it is not such a loop."""
    if type(op) is not WhileOp or (compared := _comparison(op)) is None:
        return None
    argument, bound = compared
    index = argument.index
    start = scalar_integer(op.operands[index])
    if start is None or not 0 <= start < bound < MAX_COUNTER or not _grows_by_one(op, index):
        return None
    return CountedLoop(op, index, start, bound - start)


def trips_of(op: Operation) -> int:
    """Return the number of times that the regions of the operation run: the trip count of a counted loop, otherwise
    1."""
    loop = counted_loop(op)
    return 1 if loop is None else loop.trips


def _comparison(op: WhileOp) -> tuple[BlockArgument, int] | None:
    """Return the argument that the condition compares with a constant upper bound, and the bound; None for any other
    condition."""
    block, last = op.cond.block, op.cond.block.last_op
    value = last.operands[0] if last is not None and last.operands else None
    compare = value.op if isinstance(value, OpResult) else None
    if not isinstance(compare, CompareOp) or not is_bare(compare) or compare.comparison_direction.data.value != "LT":
        return None
    argument = _unconstrained(compare.lhs)
    if not isinstance(argument, BlockArgument) or argument.block is not block:
        return None
    bound = _bound(op, compare.rhs)
    return None if bound is None else (argument, bound)


def _bound(op: WhileOp, value: SSAValue) -> int | None:
    """Return the constant bound of the counter. The condition defines this bound, or the loop carries it unchanged."""
    value = _unconstrained(value)
    if isinstance(value, BlockArgument) and value.block is op.cond.block:
        last = op.body.block.last_op
        unchanged = last is not None and last.operands[value.index] is op.body.block.args[value.index]
        return scalar_integer(op.operands[value.index]) if unchanged else None
    return scalar_integer(value)


def _grows_by_one(op: WhileOp, index: int) -> bool:
    last = op.body.block.last_op
    value = _unconstrained(last.operands[index]) if last is not None else None
    if not isinstance(value, OpResult) or name_of(value.op) != "stablehlo.add" or not is_bare(value.op):
        return False
    counter = op.body.block.args[index]
    others = [operand for operand in value.op.operands if _unconstrained(operand) is not counter]
    return len(others) == 1 and scalar_integer(others[0]) == 1
