"""Choose the minimum cut of a pair of loops: the smallest set of values to stack from which the reading loop can
recompute all other values that it needs.

The values of the writing loop's body form a graph. In this graph, keeping a value costs the bytes of one slice per
iteration. Values that are available in every iteration cost nothing: the counter, constants, and live values that the
loop does not change. The minimum cut may be the carry, as with `jax.checkpoint` around the body, or a smaller set of
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from ...analysis.copies.loop_cuts import (
    SMALLEST,
    CutOf,
    LoopCut,
    MayRepeat,
    invariant_source,
    is_inside,
    look_through_reshapes,
)
from ...analysis.request.in_loops import is_recomputed_whole
from ...analysis.step.counted_loops import CountedLoop
from ...analysis.step.order import Order, read_values
from ...analysis.step.stacks import LoopPair, Stack
from ...analysis.step.views import value_bytes
from ...options.selection import Selection
from ...planning.min_cut import min_cut
from ...planning.objective import is_worth_it
from ...rules.flops import flops

TIE_DIVISOR = 16
"""A value that the writing loop reads from outside costs 1/`TIE_DIVISOR` less than its bytes, so that it is preferred
among sets of equal size: it lowers the peak of the writing loop."""


def loop_cut(pair: LoopPair, may_repeat: MayRepeat, price: Fraction | None = None) -> LoopCut:
    """Return the minimum cut of the writing loop's body. Its `why_not` is set if it reduces the stacks too little.

    If no smaller set of values exists, all stacks are kept.

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
    for value in sorted((value for value in kept_values if is_inside(value, writer)), key=flow.order_of):
        stack = by_value.get(look_through_reshapes(value))
        if stack is not None:
            staying.add(stack.index)
            standing.append((value, stack))
        elif not _is_invariant(value, writer):
            new.append(value)
    dropped = tuple(stack for stack in optional if stack.index not in staying)
    repeated = flow.closure([stack.slice for stack in dropped], kept_values)
    cut = LoopCut(pair, dropped, repeated, tuple(standing), tuple(new))
    return cut if is_worth_it(cut.dropped_bytes, cut.new_bytes) else replace(cut, why_not=SMALLEST)


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
    """Return whether every cut keeps the stack. If several stacks contain the same value, the reading loop reads a
    stack that is kept."""
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
        results = (value for value in self.needs if isinstance(value, OpResult) and is_inside(value, self._pair.writer))
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
        if not is_inside(value, writer) or isinstance(value, BlockArgument):
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
        """Return whether the value has a use in the reading loop or later, so that it is live in that loop even if it
        is not stacked."""
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
            if value in kept_values or not isinstance(value, OpResult) or not is_inside(value, self._pair.writer):
                continue
            if value.op not in operations:
                operations.add(value.op)
                pending.extend(read_values(value.op))
        return tuple(sorted(operations, key=self._order.position.__getitem__))


def _is_invariant(value: SSAValue, loop: CountedLoop) -> bool:
    return invariant_source(value, loop) is not None
