"""What a loop keeps for the loop that reads its stacks: the smallest set of stacks from which the others are computed.

The body of the loop that writes is a graph of values; a value that is kept costs a slice in each iteration. What every
iteration knows costs nothing: the counter, constants, what the loop does not change and is there anyway. The smallest
set may be the carry, as with `jax.checkpoint` around the body, or a cheaper cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects.stablehlo.control import WhileOp
from ...planning.min_cut import min_cut
from ...planning.objective import WORTH_IT
from ...rules.flops import flops
from ...support.type_guards import is_tensor
from ..step.counted_loops import CountedLoop, counted_loop
from ..step.crossings import Crossings
from ..step.order import Order, read_values
from ..step.stacks import Link, Reading, Stack, keeps_order, links_of
from ..step.storage import value_bytes

MayRepeat = Callable[[Operation], bool]

TIES = 16
"""Of sets of equal size, one that holds what the writing loop reads anyway lowers the peak while it runs: such bytes
count a sixteenth less."""

SMALLEST = "no smaller set of stacks makes those that the later loop reads"
NOT_COUNTED = "it does not count by ones up to a constant, so that nobody knows which iteration wrote a slice"
EFFECTS = "it has effects, and no proof knows two loops with effects for the same"
WRITTEN_ON = "something is written on it, which its slices would lose"
WRITTEN_ON_THE_READER = "something is written on the loop that reads its stacks, and would be lost with it"
READ_WHOLE = "what it hands on to a later loop is not written, or not read, slice by slice with its counter"


@dataclass(frozen=True)
class LoopCut:
    """`again`: the operations of the writing body that the reading body repeats, in program order. `kept`: values of
    the writing body, and the stacks that hold them already; `new`: values that get one. `dropped`: the stacks that
    nobody reads any more."""

    link: Link
    again: tuple[Operation, ...]
    kept: tuple[tuple[SSAValue, Stack], ...]
    new: tuple[SSAValue, ...]
    dropped: tuple[Stack, ...]

    @property
    def dropped_bytes(self) -> int:
        return sum(stack.bytes for stack in self.dropped)

    @property
    def new_bytes(self) -> int:
        return sum(value_bytes(value) for value in self.new) * self.link.writer.trips

    @property
    def kept_bytes(self) -> int:
        """Of all stacks that are held for the reading loop then."""
        gone = {stack.index for stack in self.dropped}
        return self.new_bytes + sum(stack.bytes for stack in self.link.stacks if stack.index not in gone)

    @property
    def extra_flops(self) -> int:
        """Of all iterations."""
        groups = len({one.written for one in self.replaced})
        return sum(flops(op) for op in self.again) * groups * self.link.reader.trips

    @property
    def why_not(self) -> str | None:
        """Why the loops are left as they are; None where the cut is worth it."""
        saved = self.dropped_bytes - self.new_bytes
        return None if saved > WORTH_IT * self.dropped_bytes else SMALLEST

    @property
    def replaced(self) -> tuple[Reading, ...]:
        """The readings of what is not kept."""
        gone = {stack.index for stack in self.dropped}
        return tuple(reading for reading in self.link.readings if reading.stack.index in gone)


def loop_cut(link: Link, may_repeat: MayRepeat, price: Fraction | None = None) -> LoopCut:
    """The smallest set of stacks. Nothing is dropped where no other set is smaller.

    price: in FLOPs for a byte, what a byte that is not kept is worth: the set for which bytes at this price and FLOPs
    together are least, a minimum cut with the work on the edges from what is there (Picard, 1976).
    """
    writer = link.writer
    optional = [stack for stack in link.stacks if stack.index in link.only_read]
    flow = _Flow(link, may_repeat)
    for stack in optional:
        flow.add(stack.slice)
    kept = min_cut([stack.slice for stack in optional], flow.needs, *flow.priced(price))
    stays = set[int]()
    by_value = {
        seen_through(stack.slice): stack for stack in sorted(link.standing, key=lambda one: _is_held(one, link))
    }
    standing, new = list[tuple[SSAValue, Stack]](), list[SSAValue]()
    for value in sorted((value for value in kept if _is_inside(value, writer)), key=flow.order_of):
        stack = by_value.get(seen_through(value))
        if stack is not None:
            stays.add(stack.index)
            standing.append((value, stack))
        elif not _is_given(value, writer):
            new.append(value)
    dropped = tuple(stack for stack in optional if stack.index not in stays)
    again = flow.closure([stack.slice for stack in dropped], kept)
    return LoopCut(link, again, tuple(standing), tuple(new), dropped)


def _is_held(stack: Stack, link: Link) -> bool:
    """Whether the stack is there anyway: of several that hold one value it is the one to read."""
    return stack.index in link.outputs or stack.index not in link.only_read


class _Flow:
    """The values that what is wanted is computed from, as `min_cut` wants them."""

    def __init__(self, link: Link, may_repeat: MayRepeat):
        self.needs = dict[SSAValue, tuple[SSAValue, ...]]()
        self.cost = dict[SSAValue, int]()
        self._link, self._may_repeat = link, may_repeat
        self._order = Order.of(link.writer.block)
        self._constants = self._order.constants
        staying = [stack for stack in link.standing if stack.index not in link.only_read]
        self._free = {one for stack in staying for one in (stack.slice, seen_through(stack.slice))}

    def order_of(self, value: SSAValue) -> tuple[int, int]:
        return self._order.definition(value), value.index if isinstance(value, OpResult | BlockArgument) else 0

    def priced(self, price: Fraction | None) -> tuple[Mapping[SSAValue, int], Mapping[SSAValue, int]]:
        """Of keeping each value, and of computing it again; of an operation with several results each its share."""
        if price is None:
            given = (value for value in self.cost if _is_given(value, self._link.writer))
            return {value: size * TIES for value, size in self.cost.items()} | {
                value: self.cost[value] * (TIES - 1) for value in given
            }, {}
        cost = {value: size * price.numerator for value, size in self.cost.items()}
        made = (value for value in self.needs if isinstance(value, OpResult) and _is_inside(value, self._link.writer))
        often = self._link.reader.trips * price.denominator
        return cost, {value: flops(value.op) * often // len(value.op.results) for value in made}

    def add(self, value: SSAValue) -> None:
        """The value and all that it is computed from."""
        pending = [value]
        while pending:
            value = pending.pop()
            if value in self.cost:
                continue
            self.cost[value] = self._cost(value)
            needs = self._needs(value)
            if needs is not None:
                self.needs[value] = needs
                pending.extend(needs)

    def _cost(self, value: SSAValue) -> int:
        writer = self._link.writer
        if value in self._free:
            return 0
        if _is_given(value, writer):
            return value_bytes(value)
        return value_bytes(value) * writer.trips

    def _needs(self, value: SSAValue) -> tuple[SSAValue, ...] | None:
        writer = self._link.writer
        if not _is_inside(value, writer) or isinstance(value, BlockArgument):
            return () if self._is_there(value) else None
        assert isinstance(value, OpResult)
        return tuple(read_values(value.op)) if value in self._constants or self._may_repeat(value.op) else None

    def _is_there(self, value: SSAValue) -> bool:
        """Whether the reading loop knows it and nothing has to be kept for that."""
        writer = self._link.writer
        if value is writer.block.args[writer.counter]:
            return True
        outside = given(value, writer)
        return outside is not None and (isinstance(outside, BlockArgument) or self._lives_on(outside))

    def _lives_on(self, value: SSAValue) -> bool:
        """Whether somebody reads it in the reading loop or later."""
        block, reader = self._link.writer.op.parent, self._link.reader.op
        assert block is not None, "a loop stands in a block"
        order = Order.of(block)
        users = [order.owner_here(use.operation) for use in value.uses]
        return any(user is not None and order.position[user] >= order.position[reader] for user in users)

    def closure(self, wanted: list[SSAValue], kept: frozenset[SSAValue]) -> tuple[Operation, ...]:
        """What makes the wanted values from those that are kept, in program order."""
        found, pending = set[Operation](), list(wanted)
        while pending:
            value = pending.pop()
            if value in kept or not isinstance(value, OpResult) or not _is_inside(value, self._link.writer):
                continue
            if value.op not in found:
                found.add(value.op)
                pending.extend(read_values(value.op))
        return tuple(sorted(found, key=self._order.position.__getitem__))


def given(value: SSAValue, loop: CountedLoop) -> SSAValue | None:
    """What the value of the body is outside of the loop; None for what the loop computes."""
    if isinstance(value, BlockArgument) and value.block is loop.block:
        return loop.op.operands[value.index] if loop.is_invariant(value.index) else None
    return None if _is_inside(value, loop) else value


def _is_given(value: SSAValue, loop: CountedLoop) -> bool:
    return given(value, loop) is not None


def _is_inside(value: SSAValue, loop: CountedLoop) -> bool:
    if isinstance(value, BlockArgument):
        return value.block is loop.block
    return isinstance(value, OpResult) and value.op.parent is loop.block


def seen_through(value: SSAValue) -> SSAValue:
    """The value that it looks at, where it holds the same elements in the same order."""
    while isinstance(value, OpResult) and keeps_order(value.op):
        value = value.op.operands[0]
    return value


def left_alone(block: Block, crossings: Crossings) -> Iterator[tuple[Operation, str]]:
    """Loops of the block that hand something on to a backward loop and no stack, with the reason."""
    linked = {link.writer.op for link in links_of(block)}
    for op in block.ops:
        if (
            isinstance(op, WhileOp)
            and op not in linked
            and any(crossings.may_cross(op, reader) for result in op.results for reader in _readers(result))
        ):
            loop = counted_loop(op)
            yield op, NOT_COUNTED if loop is None else READ_WHOLE if loop.is_bare else WRITTEN_ON


def _readers(value: SSAValue) -> Iterator[Operation]:
    """Later loops that get a tensor from this one, and do not change it."""
    if not isinstance(value, OpResult) or not is_tensor(value.type) or len(value.type.get_shape()) < 2:
        return
    for use in value.uses:
        user, holder = use.operation, use.operation.parent_op()
        if isinstance(holder, WhileOp) and holder.parent is value.op.parent:
            yield holder
        if isinstance(user, WhileOp) and user.parent is value.op.parent:
            last = user.body.block.last_op
            if last is not None and last.operands[use.index] is user.body.block.args[use.index]:
                yield user
