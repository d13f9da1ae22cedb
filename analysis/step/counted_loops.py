"""Loops that count: a carry that starts at a constant, grows by one, and ends the loop at a constant.

    %n, %r = stablehlo.while(%i = 0, %x = %a) cond { %i < 8 } do { …; return %i + 1, … }

The number of an iteration runs from 0 to `trips` - 1; what a loop computes from its counter by sums and differences
with constants is `scale * number + offset`, an `Affine`. That is how `lax.scan` and `lax.fori_loop` are lowered.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects.dense import DenseAttr, to_numpy
from ...dialects.names import Names
from ...dialects.stablehlo.checks import element_of, shape_of
from ...dialects.stablehlo.control import WhileOp
from ...dialects.stablehlo.creation import ConstantOp
from ...dialects.stablehlo.elementwise import CompareOp
from ...rules.names import name_of
from ...support.type_guards import is_unsigned

LARGEST = 2**31 - 1
"""Counters are integers of at least 32 bits, and nothing that is computed from one leaves these bounds."""


@dataclass(frozen=True)
class Affine:
    """`scale * number + offset`, for the number of an iteration."""

    scale: int
    offset: int

    def __add__(self, other: Affine) -> Affine:
        return Affine(self.scale + other.scale, self.offset + other.offset)

    def __sub__(self, other: Affine) -> Affine:
        return Affine(self.scale - other.scale, self.offset - other.offset)

    def at(self, number: int) -> int:
        return self.scale * number + self.offset

    def covers(self, trips: int) -> bool:
        """Whether it takes each of 0 … trips - 1 once while the number runs from 0 to trips - 1."""
        return abs(self.scale) == 1 and min(self.at(0), self.at(trips - 1)) == 0


@dataclass(frozen=True)
class CountedLoop:
    """`op` runs `trips` times, at least once; its carry number `counter` is `start + number`."""

    op: WhileOp
    counter: int
    start: int
    trips: int

    @property
    def block(self) -> Block:
        return self.op.body.block

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """What the body hands on to the next iteration."""
        last = self.block.last_op
        assert last is not None, "verified: a body ends"
        return tuple(last.operands)

    @property
    def is_bare(self) -> bool:
        """Whether nothing is written on the loop, nor where its regions end."""
        ends = (region.block.last_op for region in self.op.regions)
        return is_bare(self.op) and all(end is None or is_bare(end) for end in ends)

    def is_invariant(self, index: int) -> bool:
        """Whether this carry is in each iteration what it is before the loop."""
        return self.yielded[index] is self.block.args[index]

    def affine(self, value: SSAValue) -> Affine | None:
        """The value as a function of the iteration's number; None for what is not known to be one."""
        if value is self.block.args[self.counter]:
            return Affine(1, self.start)
        if isinstance(value, BlockArgument):
            index = value.index
            is_own = value.block is self.block and self.is_invariant(index)
            return self.affine(self.op.operands[index]) if is_own else None
        if (number := scalar_integer(value)) is not None:
            return Affine(0, number)
        return self._computed(value.op) if isinstance(value, OpResult) else None

    def _computed(self, op: Operation) -> Affine | None:
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
        found = parts[0] + parts[1] if name == "stablehlo.add" else parts[0] - parts[1]
        return found if all(abs(found.at(number)) <= LARGEST for number in (0, self.trips - 1)) else None

    def _is_never_negative(self, what: Affine) -> bool:
        return all(what.at(number) >= 0 for number in (0, self.trips - 1))


_LINEAR = frozenset({"stablehlo.add", "stablehlo.subtract", "stablehlo.convert"})


def _is_index(value: SSAValue) -> bool:
    element = element_of(value)
    return isinstance(element, IntegerType) and element.bitwidth >= 32 and shape_of(value) == ()


def is_bare(op: Operation) -> bool:
    """Whether all that is written on the operation is ours: what others write would be lost with it, and the proof
    sees that."""
    return all(name.startswith(Names.PREFIX) for name in op.attributes)


def scalar_integer(value: SSAValue) -> int | None:
    """What a constant holds that is one integer."""
    op = value.op if isinstance(value, OpResult) else None
    if not isinstance(op, ConstantOp) or not is_bare(op) or not isinstance(op.value, DenseAttr) or not _is_index(value):
        return None
    number = int(to_numpy(op.value).item())
    return number if abs(number) <= LARGEST else None


def counted_loop(op: Operation) -> CountedLoop | None:
    """The operation as a loop that counts up to a constant, and runs at least once; None for any other."""
    if not isinstance(op, WhileOp) or (compared := _comparison(op)) is None:
        return None
    argument, bound = compared
    index = argument.index
    start = scalar_integer(op.operands[index])
    if start is None or not 0 <= start < bound < LARGEST or not _grows_by_one(op, index):
        return None
    return CountedLoop(op, index, start, bound - start)


def _comparison(op: WhileOp) -> tuple[BlockArgument, int] | None:
    """The carry, as the condition sees it, that is compared with a constant that it must be less than."""
    block, last = op.cond.block, op.cond.block.last_op
    value = last.operands[0] if last is not None and last.operands else None
    compare = value.op if isinstance(value, OpResult) else None
    if not isinstance(compare, CompareOp) or not is_bare(compare) or compare.comparison_direction.data.value != "LT":
        return None
    argument = compare.lhs
    if not isinstance(argument, BlockArgument) or argument.block is not block:
        return None
    bound = _bound(op, compare.rhs)
    return None if bound is None else (argument, bound)


def _bound(op: WhileOp, value: SSAValue) -> int | None:
    """The constant that the counter is compared with: in the condition, or carried unchanged."""
    if isinstance(value, BlockArgument) and value.block is op.cond.block:
        last = op.body.block.last_op
        unchanged = last is not None and last.operands[value.index] is op.body.block.args[value.index]
        return scalar_integer(op.operands[value.index]) if unchanged else None
    return scalar_integer(value)


def _grows_by_one(op: WhileOp, index: int) -> bool:
    last = op.body.block.last_op
    value = last.operands[index] if last is not None else None
    if not isinstance(value, OpResult) or name_of(value.op) != "stablehlo.add" or not is_bare(value.op):
        return False
    counter = op.body.block.args[index]
    others = [operand for operand in value.op.operands if operand is not counter]
    return len(others) == 1 and scalar_integer(others[0]) == 1
