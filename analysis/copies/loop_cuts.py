"""Minimum cuts of loops that stack values for their gradient.

The input is a loop that writes stacks, and a later loop that reads them. The minimum cut is the smallest set of values
to stack from which the reading loop can recompute the other values that it needs.

The values of the writing loop's body form a graph. In this graph, keeping a value costs the bytes of one slice per
iteration. Values that are available in every iteration cost nothing: the counter, constants, and live values that the
loop does not change. The minimum cut may be the carry, as with `jax.checkpoint` around the body, or a smaller set of
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects.stablehlo.control import WhileOp
from ...options.selection import Selection
from ...planning.min_cut import min_cut
from ...planning.objective import is_worth_it
from ...rules.flops import flops
from ...support.operations import name_of
from ...support.type_guards import is_tensor
from ..request.in_loops import is_recomputed_whole
from ..step.counted_loops import CountedLoop, counted_loop
from ..step.crossings import Crossings
from ..step.order import Order, read_values
from ..step.stacks import LoopPair, Stack, StackRead, keeps_order, loop_pairs, stack_bytes
from ..step.views import value_bytes

MayRepeat = Callable[[Operation], bool]
"""A predicate that tells whether an operation may be recomputed."""

TIE_DIVISOR = 16
"""A value that the writing loop reads from outside costs 1/`TIE_DIVISOR` less than its bytes, so that it is preferred
among sets of equal size: it lowers the peak of the writing loop."""

SMALLEST = "no smaller set of stacks determines the stacks that the later loop reads"
NOT_COUNTED = "its counter does not increase by one up to a constant, so the iteration that wrote a slice is unknown"
EFFECTS = "it has effects, and the proof cannot show that two loops with effects are equal"
WRITTEN_ON = "it has attributes that a rewrite would lose"
WRITTEN_ON_THE_READER = "the loop that reads its stacks has attributes that a rewrite would lose"
READ_WHOLE = "the values that the loop passes to a later loop are not written and read slice by slice with its counter"


@dataclass(frozen=True)
class DroppedStacks:
    """The stacks that a rewrite of two loops drops.

    Attributes:
        pair: The writing loop and the reading loop.
        dropped: The stacks that have no readers after the rewrite.
    """

    pair: LoopPair
    dropped: tuple[Stack, ...]

    @property
    def dropped_reads(self) -> tuple[StackRead, ...]:
        """The reads of dropped stacks."""
        return self.pair.reads_of(self.dropped)

    @property
    def dropped_bytes(self) -> int:
        """Bytes of the dropped stacks over all iterations."""
        return stack_bytes(self.dropped)


@dataclass(frozen=True)
class LoopCut(DroppedStacks):
    """A cut of the writing loop's body into kept and recomputed values.

    Attributes:
        repeated: The operations of the writing body that the reading body repeats, in program order.
        kept: Values of the writing body that existing stacks hold, each with its stack.
        new: Values for which the cut adds a stack.
    """

    repeated: tuple[Operation, ...]
    kept: tuple[tuple[SSAValue, Stack], ...]
    new: tuple[SSAValue, ...]

    @property
    def new_bytes(self) -> int:
        return sum(value_bytes(value) for value in self.new) * self.pair.writer.trips

    @property
    def kept_bytes(self) -> int:
        """Bytes of all stacks that the reading loop reads after the cut."""
        dropped = {stack.index for stack in self.dropped}
        return self.new_bytes + sum(stack.bytes for stack in self.pair.stacks if stack.index not in dropped)

    @property
    def extra_flops(self) -> int:
        """FLOPs of the repeated operations over all iterations."""
        groups = len({reading.written for reading in self.dropped_reads})
        return sum(flops(op) for op in self.repeated) * groups * self.pair.reader.trips

    @property
    def why_not(self) -> str | None:
        """The reason to leave the loops unchanged; None if the cut saves enough."""
        return None if is_worth_it(self.dropped_bytes, self.new_bytes) else SMALLEST


def loop_cut(pair: LoopPair, may_repeat: MayRepeat, price: Fraction | None = None) -> LoopCut:
    """Return the minimum cut of the writing loop's body. If no smaller set of values exists, all stacks are kept.

    Args:
        pair: The writing loop and the reading loop.
        may_repeat: A predicate that tells whether an operation may be recomputed.
        price: The price of a byte in FLOPs. If given, minimize bytes times price plus extra FLOPs instead of bytes,
            using a minimum cut with the FLOPs on the edges from the available values (Picard, 1976).

    """
    writer = pair.writer
    optional = [stack for stack in pair.stacks if stack.index in pair.only_read]
    flow = _Flow(pair, may_repeat)
    for stack in optional:
        flow.add(stack.slice)
    kept_values = min_cut([stack.slice for stack in optional], flow.needs, *flow.costs_at(price))
    staying = set[int]()
    by_value = {
        look_through_reshapes(stack.slice): stack
        for stack in sorted(pair.all_stacks, key=lambda stack: _is_held(stack, pair))
    }
    standing = list[tuple[SSAValue, Stack]]()
    new = list[SSAValue]()
    for value in sorted((value for value in kept_values if _is_inside(value, writer)), key=flow.order_of):
        stack = by_value.get(look_through_reshapes(value))
        if stack is not None:
            staying.add(stack.index)
            standing.append((value, stack))
        elif not _is_invariant(value, writer):
            new.append(value)
    dropped = tuple(stack for stack in optional if stack.index not in staying)
    repeated = flow.closure([stack.slice for stack in dropped], kept_values)
    return LoopCut(pair, dropped, repeated, tuple(standing), tuple(new))


CutOf = Callable[[LoopPair], LoopCut]
"""A function that returns the cut of a loop pair."""


def loops_recomputed_whole(pairs: Iterable[LoopPair], cut_of: CutOf, selection: Selection) -> frozenset[Operation]:
    """Return the loops in named segments that are recomputed as a whole.

    Whole loops are recomputed one after the other, so only the stacks of one loop are live at a time. In contrast, the
    stacks that the cuts keep are all live together. So whole loops are recomputed if the stacks of the largest loop
    have fewer bytes than the stacks that all cuts keep.
    """
    pairs = [pair for pair in pairs if is_recomputed_whole(pair.writer.op, selection)]
    cuts = [cut for pair in pairs if (cut := cut_of(pair)).why_not is None]
    kept_bytes = sum(cut.kept_bytes for cut in cuts)
    largest = max((sum(stack.bytes for stack in pair.stacks) for pair in pairs), default=0)
    return frozenset(pair.writer.op for pair in pairs) if kept_bytes > largest else frozenset()


def _is_held(stack: Stack, pair: LoopPair) -> bool:
    """Return whether every cut keeps the stack. If several stacks hold the same value, the reading loop reads such a
    stack."""
    return stack.index in pair.outputs or stack.index not in pair.only_read


class _Flow:
    """The dependence graph of the stacked values, as the input of `min_cut`."""

    def __init__(self, pair: LoopPair, may_repeat: MayRepeat):
        self.needs = dict[SSAValue, tuple[SSAValue, ...]]()
        self.cost = dict[SSAValue, int]()
        self._pair, self._may_repeat = pair, may_repeat
        self._order = Order.of(pair.writer.block)
        self._constants = self._order.constants
        staying = [stack for stack in pair.all_stacks if stack.index not in pair.only_read]
        self._free = {value for stack in staying for value in (stack.slice, look_through_reshapes(stack.slice))}

    def order_of(self, value: SSAValue) -> tuple[int, int]:
        return self._order.definition(value), value.index if isinstance(value, OpResult | BlockArgument) else 0

    def costs_at(self, price: Fraction | None) -> tuple[Mapping[SSAValue, int], Mapping[SSAValue, int]]:
        """Return the cost of keeping each value, and the cost of recomputing it.

        The results of an operation share its recomputation cost equally.
        """
        if price is None:
            from_outside = (value for value in self.cost if _is_invariant(value, self._pair.writer))
            return {value: size * TIE_DIVISOR for value, size in self.cost.items()} | {
                value: self.cost[value] * (TIE_DIVISOR - 1) for value in from_outside
            }, {}
        cost = {value: size * price.numerator for value, size in self.cost.items()}
        results = (
            value for value in self.needs if isinstance(value, OpResult) and _is_inside(value, self._pair.writer)
        )
        factor = self._pair.reader.trips * price.denominator
        return cost, {value: flops(value.op) * factor // len(value.op.results) for value in results}

    def add(self, value: SSAValue) -> None:
        """Add the value and, transitively, its operands."""
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
        writer = self._pair.writer
        if value in self._free:
            return 0
        if _is_invariant(value, writer):
            return value_bytes(value)
        return value_bytes(value) * writer.trips

    def _needs(self, value: SSAValue) -> tuple[SSAValue, ...] | None:
        writer = self._pair.writer
        if not _is_inside(value, writer) or isinstance(value, BlockArgument):
            return () if self._is_available(value) else None
        assert isinstance(value, OpResult)
        return tuple(read_values(value.op)) if value in self._constants or self._may_repeat(value.op) else None

    def _is_available(self, value: SSAValue) -> bool:
        """Return whether the reading loop can read the value without a stack."""
        writer = self._pair.writer
        if value is writer.block.args[writer.counter]:
            return True
        outside = invariant_source(value, writer)
        return outside is not None and (isinstance(outside, BlockArgument) or self._is_live_at_reader(outside))

    def _is_live_at_reader(self, value: SSAValue) -> bool:
        """Return whether the value has a use in the reading loop or later, so that it is live there in any case."""
        block, reader = self._pair.writer.op.parent, self._pair.reader.op
        assert block is not None, "a loop is inside a block"
        order = Order.of(block)
        users = [order.owner_here(use.operation) for use in value.uses]
        return any(user is not None and order.position[user] >= order.position[reader] for user in users)

    def closure(self, needed: list[SSAValue], kept_values: frozenset[SSAValue]) -> tuple[Operation, ...]:
        """Return the operations that compute the needed values from the kept values, in program order."""
        operations, pending = set[Operation](), list(needed)
        while pending:
            value = pending.pop()
            if value in kept_values or not isinstance(value, OpResult) or not _is_inside(value, self._pair.writer):
                continue
            if value.op not in operations:
                operations.add(value.op)
                pending.extend(read_values(value.op))
        return tuple(sorted(operations, key=self._order.position.__getitem__))


def invariant_source(value: SSAValue, loop: CountedLoop) -> SSAValue | None:
    """Return the value outside the loop that a loop-invariant value equals, or None if the value is not invariant."""
    if isinstance(value, BlockArgument) and value.block is loop.block:
        return loop.op.operands[value.index] if loop.is_invariant(value.index) else None
    return None if _is_inside(value, loop) else value


def _is_invariant(value: SSAValue, loop: CountedLoop) -> bool:
    return invariant_source(value, loop) is not None


def _is_inside(value: SSAValue, loop: CountedLoop) -> bool:
    if isinstance(value, BlockArgument):
        return value.block is loop.block
    return isinstance(value, OpResult) and value.op.parent is loop.block


def look_through_reshapes(value: SSAValue) -> SSAValue:
    """Return the value from which a chain of reshapes starts. It has the same elements in the same order."""
    while isinstance(value, OpResult) and keeps_order(value.op):
        value = value.op.operands[0]
    return value


def loops_left_uncut(block: Block, crossings: Crossings) -> Iterator[tuple[Operation, str]]:
    """Yield the loops that pass tensors, but no stacks, to a backward loop, with the reason that they are not cut."""
    linked = {pair.writer.op for pair in loop_pairs(block)}
    for op in block.ops:
        if (
            isinstance(op, WhileOp)
            and op not in linked
            and any(crossings.may_cross(op, reader) for result in op.results for reader in _readers(result))
        ):
            loop = counted_loop(op)
            if loop is None:
                yield op, NOT_COUNTED
            else:
                yield op, READ_WHOLE if loop.is_bare else WRITTEN_ON


def _readers(value: SSAValue) -> Iterator[Operation]:
    """Yield the later loops that read a tensor of rank 2 or more without changing it."""
    if not isinstance(value, OpResult) or not is_tensor(value.type) or len(value.type.get_shape()) < 2:
        return
    for use in value.uses:
        user, holder = use.operation, use.operation.parent_op()
        if name_of(user) == "sdy.sharding_constraint":
            yield from _readers(user.results[0])
        if isinstance(holder, WhileOp) and holder.parent is value.op.parent:
            yield holder
        if isinstance(user, WhileOp) and user.parent is value.op.parent:
            last = user.body.block.last_op
            if last is not None and last.operands[use.index] is user.body.block.args[use.index]:
                yield user
