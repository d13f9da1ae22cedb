"""Merge loops in pieces to one loop: a loop that continues another one, and a loop around a loop.

*Continuation.* If the initial carries of a loop are those of another one after `a` iterations, and its iteration n
computes the same from them as iteration `a + n` of the other one, then its carries are those of the other one:

    history(n, y)  with  y before the loop = history(a, x),  next y (n) = next x (a + n)    ->    history(a + n, x)

by induction on n. *A loop around a loop.* If each iteration q of a loop is k iterations of an inner loop with the same
carries, and both use q and the inner n only as `k * q + n`, then both are one loop over that sum:

    history(q, y)  with  next y (q) = history(k, x), x before the loop = y, next x (q, n) = f(k * q + n, x)
    ->  history(k * q, z)  with  next z (t) = f(t, z)

by induction on q, and on n in each. Rewrites with checkpoints every k iterations consist of both (Griewank and Walther,
Evaluating Derivatives, 2008, chapter 12). Every step of the induction is checked here: the terms of one body, with
`a + n` for its number, must be those of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..terms import Head, RegionTerm, Terms
from .integers import LARGEST, Integers, Sum
from .opened import Opened, Slice, reaches


class PieceTerms(Protocol):
    """The interface of `Rules` that the rules for pieces use."""

    terms: Terms
    integers: Integers

    def opened(self, number: int) -> Opened: ...

    def slice(self, loop: Opened, index: int) -> Slice: ...

    def history(self, loop: Opened, index: int, at: int) -> int: ...

    def make(self, head: Head, operands: tuple[int, ...]) -> int: ...

    def instance(self, body: RegionTerm, arguments: Sequence[int], captures: Sequence[int]) -> list[int]: ...


def continued(rules: PieceTerms, loop: Opened, index: int, at: int) -> int | None:
    """Carry `index` at the start of iteration `at`, if the loop continues another one; else None."""
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
    carried = [loop.bound[carry] for carry in order]
    if _next(rules, first, (number, *carried, loop.state)) != [loop.next[carry] for carry in order]:
        return None
    begins = [rules.history(other, position, stopped) for position in range(len(order))]
    if begins != [loop.initial[carry] for carry in order]:
        return None
    # Not a history of `other`, of which only the first iterations are known.
    return rules.make(rules.terms.head_of(first), (reached, *rules.terms.operands_of(first)[1:]))


def flattened(rules: PieceTerms, loop: Opened, index: int, at: int) -> int | None:
    """Carry `index` at the start of iteration `at`, if each iteration runs an inner loop; else None."""
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
    if [rules.history(inner, position, runs) for position in range(len(order))] != [
        loop.next[carry] for carry in order
    ]:
        return None
    number = terms.bound("bound", terms.head_of(loop.lead).types, loop.depth)
    integers.ranges[number] = 0, max(0, trips * reached[1] - 1)
    inside = integers.sum_of(number).minus(integers.sum_of(loop.lead).times(trips))
    carried = tuple([terms.bound("bound", (loop.types[carry],), loop.depth) for carry in order])
    arguments = integers.written(inside, terms.head_of(number)), *carried, loop.state
    following = tuple(_next(rules, loop.next[index], arguments))
    if reaches(terms, following, frozenset((loop.lead, *loop.bound)), loop.depth):
        return None
    initial = tuple(loop.initial[carry] for carry in order)
    types = tuple(loop.types[carry] for carry in order)
    flat = Opened(carried, initial, following, types, True, number, loop.state, loop.depth)
    return rules.history(flat, 0, integers.written(integers.sum_of(at).times(trips), terms.head_of(number)))


def _carries_of(rules: PieceTerms, loop: Opened, index: int) -> tuple[int, ...] | None:
    """For each carry of the inner loop the outer carry that is its initial value; None if one has another initial
    value, or two share one."""
    number = {bound: carry for carry, bound in enumerate(loop.bound)}
    begins = rules.opened(loop.next[index]).initial
    order = tuple([number[first] for first in begins if first in number])
    is_each = len(order) == len(begins) == len(set(order)) and order[:1] == (index,)
    return order if is_each else None


def _are_alike(rules: PieceTerms, loop: Opened, order: Sequence[int], other: Opened) -> bool:
    """Whether both loops count in the same type and have equally many carries."""
    types = [rules.terms.head_of(opened.lead).types for opened in (loop, other)]
    return loop.counts and other.counts and types[0] == types[1] and len(order) == len(other.bound)


def _next(rules: PieceTerms, history: int, arguments: Sequence[int]) -> list[int]:
    """The next carries of a history's loop for these arguments: iteration number, carries, state."""
    terms = rules.terms
    body, operands = terms.bodies[terms.head_of(history).bodies[0]], terms.operands_of(history)
    carries = len(body.types) - 1
    numbers = rules.instance(body, arguments, operands[1 + carries :])
    return [numbers[root] for root in body.roots[:-1]]


def _sum(rules: PieceTerms, number: int, other: int) -> int | None:
    """The sum of two iteration numbers; None if it is not proved to be one."""
    integers = rules.integers
    total: Sum = integers.sum_of(number).plus(integers.sum_of(other))
    within = integers.interval(total)
    return integers.written(total, rules.terms.head_of(number)) if within is not None and within[0] >= 0 else None
