"""Loops in pieces are one loop: where one goes on, and where one stands around the other.

*A loop that goes on.* A loop whose carries begin as those of another one are after `a` of its iterations, and whose
iteration n does with them what the iteration `a + n` of the other one does, carries what the other one does:

    history(n, y)  with  y before the loop = history(a, x),  next y (n) = next x (a + n)    ->    history(a + n, x)

by induction on n. *A loop around a loop.* A loop of which each iteration q is k iterations of an inner loop, with the
same carries, and that uses q and the inner n only as `k * q + n`, is one loop that counts these:

    history(q, y)  with  next y (q) = history(k, x), x before the loop = y, next x (q, n) = f(k * q + n, x)
    ->  history(k * q, z)  with  next z (t) = f(t, z)

by induction on q, and on n in each. Both are what rewrites with checkpoints every k iterations are made of (Griewank
and Walther, Evaluating Derivatives, 2008, chapter 12). Every step of the induction is looked at here: the terms of the
one body, with `a + n` for its number, have to be those of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..terms import Body, Head, Terms
from .integers import LARGEST, Integers, Sum
from .opened import Opened, Slice, reaches


class Known(Protocol):
    """What the rules for pieces ask of those for terms."""

    terms: Terms
    integers: Integers

    def opened(self, number: int) -> Opened: ...

    def slice(self, loop: Opened, index: int) -> Slice: ...

    def history(self, loop: Opened, index: int, at: int) -> int: ...

    def make(self, head: Head, operands: tuple[int, ...]) -> int: ...

    def instance(self, body: Body, arguments: Sequence[int], captures: Sequence[int]) -> list[int]: ...


def continued(rules: Known, loop: Opened, index: int, at: int) -> int | None:
    """What carry `index` is when iteration `at` begins, if the loop goes on where another one stopped."""
    first = loop.initial[index]
    if rules.terms.head_of(first).kind != "history":
        return None
    other, order = rules.opened(first), rules.slice(loop, index).order
    stopped = rules.terms.operands_of(first)[0]
    if not _are_alike(rules, loop, order, other):
        return None
    number, reached = _sum(rules, loop.lead, stopped), _sum(rules, at, stopped)
    if number is None or reached is None:
        return None
    carried = [loop.bound[one] for one in order]
    if _next(rules, first, (number, *carried, loop.state)) != [loop.next[one] for one in order]:
        return None
    begins = [rules.history(other, position, stopped) for position in range(len(order))]
    if begins != [loop.initial[one] for one in order]:
        return None
    # Not of `other`, of which no more is known than its first iterations.
    return rules.make(rules.terms.head_of(first), (reached, *rules.terms.operands_of(first)[1:]))


def flattened(rules: Known, loop: Opened, index: int, at: int) -> int | None:
    """What carry `index` is when iteration `at` begins, if each iteration is some of an inner loop."""
    terms, integers = rules.terms, rules.integers
    if terms.head_of(loop.next[index]).kind != "history":
        return None
    runs = terms.operands_of(loop.next[index])[0]
    trips, reached = integers.constant(runs), integers.interval(integers.sum_of(at))
    if trips is None or trips < 1 or reached is None or reached[0] < 0 or trips * reached[1] > LARGEST:
        return None
    inner, order = rules.opened(loop.next[index]), _carries_of(rules, loop, index)
    if order is None or not _are_alike(rules, loop, order, inner):
        return None
    if [rules.history(inner, position, runs) for position in range(len(order))] != [loop.next[one] for one in order]:
        return None
    number = terms.bound("bound", terms.head_of(loop.lead).types, loop.depth)
    integers.ranges[number] = 0, max(0, trips * reached[1] - 1)
    inside = integers.sum_of(number).minus(integers.sum_of(loop.lead).times(trips))
    carried = tuple([terms.bound("bound", (loop.types[one],), loop.depth) for one in order])
    arguments = integers.written(inside, terms.head_of(number)), *carried, loop.state
    following = tuple(_next(rules, loop.next[index], arguments))
    if reaches(terms, following, frozenset((loop.lead, *loop.bound)), loop.depth):
        return None
    initial = tuple(loop.initial[one] for one in order)
    types = tuple(loop.types[one] for one in order)
    flat = Opened(carried, initial, following, types, True, number, loop.state, loop.depth)
    return rules.history(flat, 0, integers.written(integers.sum_of(at).times(trips), terms.head_of(number)))


def _carries_of(rules: Known, loop: Opened, index: int) -> tuple[int, ...] | None:
    """For each carry of the inner loop the one of the outer loop that it begins as; None where one is something else,
    or two are the same."""
    number = {bound: one for one, bound in enumerate(loop.bound)}
    begins = rules.opened(loop.next[index]).initial
    order = tuple([number[first] for first in begins if first in number])
    is_each = len(order) == len(begins) == len(set(order)) and order[:1] == (index,)
    return order if is_each else None


def _are_alike(rules: Known, loop: Opened, order: Sequence[int], other: Opened) -> bool:
    """Whether both count, in the same type, and have as many carries."""
    types = [rules.terms.head_of(one.lead).types for one in (loop, other)]
    return loop.counts and other.counts and types[0] == types[1] and len(order) == len(other.bound)


def _next(rules: Known, history: int, arguments: Sequence[int]) -> list[int]:
    """What an iteration of the loop of a term makes of these: its number, the carries, the state."""
    terms = rules.terms
    body, operands = terms.bodies[terms.head_of(history).bodies[0]], terms.operands_of(history)
    carries = len(body.types) - 1
    numbers = rules.instance(body, arguments, operands[1 + carries :])
    return [numbers[root] for root in body.roots[:-1]]


def _sum(rules: Known, one: int, other: int) -> int | None:
    """The sum of two numbers of iterations; None where it is not known that it is one."""
    integers = rules.integers
    total: Sum = integers.sum_of(one).plus(integers.sum_of(other))
    within = integers.interval(total)
    return integers.written(total, rules.terms.head_of(one)) if within is not None and within[0] >= 0 else None
