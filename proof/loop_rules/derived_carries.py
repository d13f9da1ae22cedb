"""Derived carries of a loop: invariant carries, and carries that depend only on the iteration number.

    while(%i = 0, %j = 7, %k = %x) %i < 8 do { ...; return %i + 1, %j - 1, %k }

In iteration n of this loop, `%i` is n, `%j` is 7 - n, and `%k` is `%x`. A loop *counts* if its condition compares such
a carry, its *counter*, with a constant. The body of a loop that appears to count is translated to terms under the
assumption that the loop counts, which `counts_as_assumed` verifies afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from xdsl.ir import Block, OpResult, SSAValue

from ...support.operations import name_of
from ..translation.scope import RegionScope
from .constraints import CONSTRAINT
from .integers import Sum, whole
from .loop_terms import IDENTITIES, ConditionalLoop, Counter, CountingLoop, LoopPart, counter_of
from .rules import LoopRules


class Progression(NamedTuple):
    """Values of a carry that form an arithmetic progression: `start`, `start + step`, …"""

    start: Sum
    step: int


@dataclass(frozen=True)
class Counting:
    """The carries of a counting loop that change by a constant in each iteration.

    Attributes:
        counter: The carry that the condition compares.
        iteration: The term for the iteration number, which starts at 0.
        counter_value: The term for the value of the counter in that iteration.
        others: The progressions of other carries, by index.
    """

    counter: Counter
    iteration: int
    counter_value: int
    others: Mapping[int, Progression] = field(default_factory=dict[int, Progression])

    @property
    def progressions(self) -> dict[int, Progression]:
        """The progressions of all carries that change by a constant, including the counter, by index."""
        return {self.counter.index: Progression(whole(self.counter.start), 1), **self.others}


@dataclass(frozen=True)
class NumberedLoop:
    """A loop whose regions are translated to terms.

    Attributes:
        loop: The loop with all its carries, and with its condition even if it counts.
        counting: The counter of the loop and other carries that change by a constant; None if the loop does not count.
        condition, body: The scopes of the regions.
    """

    loop: ConditionalLoop
    counting: Counting | None
    condition: RegionScope
    body: RegionScope

    @property
    def regions(self) -> tuple[tuple[LoopPart, RegionScope], tuple[LoopPart, RegionScope]]:
        return ("condition", self.condition), ("body", self.body)

    @cached_property
    def derived(self) -> frozenset[int]:
        """The indices of the carries of a counting loop that are invariant or change by a constant."""
        assert self.counting is not None, "the loop counts"
        pairs = enumerate(zip(self.loop.carries, self.loop.initial, strict=True))
        return frozenset(self.counting.progressions) | {index for index, (carry, initial) in pairs if carry == initial}

    @cached_property
    def counting_loop(self) -> CountingLoop:
        """The loop as a counting loop, without the derived carries."""
        assert self.counting is not None, "the loop counts"
        loop, derived = self.loop, self.derived

        def others(listed: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(item for index, item in enumerate(listed) if index not in derived)

        return CountingLoop(
            carries=others(loop.carries),
            initial=others(loop.initial),
            next=others(loop.next),
            types=others(loop.types),
            state=loop.state,
            depth=loop.depth,
            iteration=self.counting.iteration,
        )


class DerivedCarries:
    """Finds the derived carries of loops. Both programs share one `rules` object."""

    def __init__(self, rules: LoopRules):
        self._rules = rules
        self._terms = rules.terms
        self._integers = rules.integers

    def assumed_counting(
        self, body: Block, carries: tuple[int, ...], initial: tuple[int, ...], condition: int, depth: int
    ) -> Counting | None:
        """Return the counter of a loop that appears to count, with a fresh iteration number, or None for any other
        loop."""
        assert body.last_op is not None, "checked: the body has a terminator"
        counter = counter_of(self._terms, self._integers, condition, carries, initial)
        if counter is None or not _adds_to(body.args[counter.index], body.last_op.operands[counter.index]):
            return None
        like = self._terms.head_of(carries[counter.index])
        iteration = self._terms.fresh("variable", like.types, depth)
        self._integers.ranges[iteration] = 0, counter.trips - 1
        value = self._integers.sum_of(iteration).plus(whole(counter.start))
        return Counting(counter, iteration, self._integers.term_of_sum(value, like))

    def counts_as_assumed(self, numbered: NumberedLoop) -> bool:
        """Return whether the loop counts as assumed, or no such assumption was made.

        The loop counts if its body increases the counter by one and its condition has no operations to preserve.
        """
        if (counting := numbered.counting) is None:
            return True
        integers, condition = self._integers, numbered.condition
        one_more = integers.sum_of(counting.counter_value).plus(whole(1))
        expected = integers.term_of_sum(one_more, self._terms.head_of(counting.counter_value))
        grows_by_one = numbered.loop.next[counting.counter.index] == expected
        return grows_by_one and not (condition.preserved or condition.executed)

    def replaced(self, numbered: NumberedLoop) -> NumberedLoop:
        """Replace each invariant carry with its initial value, and each carry that changes by a constant with a sum
        over the iteration number."""
        while True:
            if numbered.counting is not None:
                numbered = replace(numbered, counting=self._with_more_progressions(numbered.loop, numbered.counting))
            values = self._values(numbered)
            if not values:
                return numbered
            # The substitution may reveal further derived carries.
            numbered = self._substituted(numbered, values)

    def value_after(self, counting: Counting, progression: Progression) -> int:
        """Return the value of a progression after the loop."""
        total = progression.start.plus(whole(progression.step * counting.counter.trips))
        return self._integers.term_of_sum(total, self._terms.head_of(counting.iteration))

    def _with_more_progressions(self, loop: ConditionalLoop, counting: Counting) -> Counting:
        """Return `counting` with further carries that change by a constant in each iteration."""
        integers, types = self._integers, self._terms.head_of(counting.iteration).types
        others = dict(counting.others)
        for index, (carry, following) in enumerate(zip(loop.carries, loop.next, strict=True)):
            head = self._terms.head_of(carry)
            if index == counting.counter.index or index in others or head.types != types:
                continue
            growth = integers.sum_of(following).minus(integers.sum_of(carry))
            if head.kind == "variable" and not growth.parts:
                others[index] = Progression(integers.sum_of(loop.initial[index]), growth.offset)
        return replace(counting, others=others)

    def _values(self, numbered: NumberedLoop) -> dict[int, int]:
        """Map each fresh term that still represents a derived carry to the value of this carry."""
        loop, counting = numbered.loop, numbered.counting
        values = {
            carry: loop.initial[index]
            for index, (carry, following) in enumerate(zip(loop.carries, loop.next, strict=True))
            if carry == following != loop.initial[index]
        }
        if counting is not None:
            for index, progression in counting.others.items():
                value = self._value_in_iteration(counting, progression)
                if value != loop.carries[index]:
                    values[loop.carries[index]] = value
        return values

    def _value_in_iteration(self, counting: Counting, progression: Progression) -> int:
        total = self._integers.sum_of(counting.iteration).times(progression.step).plus(progression.start)
        return self._integers.term_of_sum(total, self._terms.head_of(counting.iteration))

    def _substituted(self, numbered: NumberedLoop, values: Mapping[int, int]) -> NumberedLoop:
        """Substitute the values for the carries in the terms of a loop and in the terms that the scopes of its regions
        record."""
        loop = numbered.loop
        recorded = [term for _, scope in numbered.regions for term in (*scope.preserved, *scope.executed)]
        terms = iter(self._rules.substitute((loop.condition, *loop.next, *recorded), values, loop.depth))
        carries = tuple(values.get(carry, carry) for carry in loop.carries)
        loop = replace(loop, carries=carries, condition=next(terms), next=tuple(next(terms) for _ in loop.next))
        condition, body = [
            replace(
                scope,
                preserved=dict.fromkeys([next(terms) for _ in scope.preserved]),
                executed={next(terms): ordered for ordered in scope.executed.values()},
            )
            for _, scope in numbered.regions
        ]
        return NumberedLoop(loop, numbered.counting, condition, body)


def _adds_to(argument: SSAValue, value: SSAValue) -> bool:
    """Return whether a value is the result of a `stablehlo.add` that has the argument as an operand.

    Barriers and sharding constraints before and after the addition are ignored.
    """
    value = _source(value)
    if not isinstance(value, OpResult) or name_of(value.op) != "stablehlo.add":
        return False
    return any(_source(operand) is argument for operand in value.op.operands)


def _source(value: SSAValue) -> SSAValue:
    """Return the value from which `value` is copied, looking through barriers and sharding constraints."""
    while isinstance(value, OpResult) and name_of(value.op) in (CONSTRAINT, *IDENTITIES):
        value = value.op.operands[value.index]
    return value
