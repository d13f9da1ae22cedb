"""A loop as terms: what it carries, and what each carry becomes in an iteration.

A result of a loop is a term of its own, made of the carries that it depends on alone: its own, and all that these are
computed from, in the order in which they are found. So carries that a result does not depend on, and the order in which
they are written, do not count.

Of a loop that counts by ones from a constant to a constant the counter is no carry, but the number of the iteration,
which begins at 0, and what a constant adds to it. What carry x of such a loop is when iteration n begins is
`history(n, x)`, and so its result is `history(trips, x)`: how often a loop runs is not part of what it does. Of other
loops a result is a `loop` term, which the condition is part of.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from ..terms import Head, Inside, Terms
from .integers import Integers

WHILE = "stablehlo.while"


@dataclass(frozen=True)
class Opened:
    """`bound`: the carries, as the body sees them, none of them equal to any other term. `initial`: what they are
    before the loop. `next`: what the body makes of them. `types`: of the carries. `lead`: of a loop that `counts` the
    number of the iteration, which is as new; of another whether it runs once more. `state`: the effects before an
    iteration, which has none."""

    bound: tuple[int, ...]
    initial: tuple[int, ...]
    next: tuple[int, ...]
    types: tuple[int, ...]
    counts: bool
    lead: int
    state: int
    depth: int


@dataclass(frozen=True)
class Counter:
    """Carry `index` is `start`, `start` + 1, … in the iterations, of which there are `trips`, at least one."""

    index: int
    start: int
    trips: int


def counter_of(
    terms: Terms, integers: Integers, condition: int, carries: tuple[int, ...], initial: tuple[int, ...]
) -> Counter | None:
    """The carry that counts up to a constant, if it grows by ones, which is not looked at."""
    head, operands = terms.head_of(condition), terms.operands_of(condition)
    if head.kind != "operation" or head.name != "stablehlo.compare":
        return None
    index = next((index for index, bound in enumerate(carries) if bound == operands[0]), None)
    if index is None or (end := integers.constant(operands[1])) is None:
        return None
    if integers.width(terms.head_of(carries[index])) is None or not _is_less(terms, integers, condition):
        return None
    start = integers.constant(initial[index])
    return Counter(index, start, end - start) if start is not None and 0 <= start < end < 2**31 - 1 else None


def _is_less(terms: Terms, integers: Integers, condition: int) -> bool:
    """Whether a comparison asks if a number is less, and compares as numbers of its type."""
    head = terms.head_of(condition)
    said = {name: terms.attributes.text(number).strip("<>").split()[-1:] for name, number in head.attributes}
    kind = ["UNSIGNED" if integers.is_unsigned(terms.head_of(terms.operands_of(condition)[0])) else "SIGNED"]
    return said.pop("comparison_direction", []) == ["LT"] and said.pop("compare_type", kind) == kind and not said


def numbered(loop: Opened, known: Container[int], number: int) -> Opened:
    """A loop of which it is known that it counts, without the carries that are known already."""

    def without(listed: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(one for index, one in enumerate(listed) if index not in known)

    return Opened(
        without(loop.bound),
        without(loop.initial),
        without(loop.next),
        without(loop.types),
        True,
        number,
        loop.state,
        loop.depth,
    )


@dataclass(frozen=True)
class Slice:
    """What one carry depends on. `order`: the carries, it first. `head`, `operands`: of the term, without which
    iteration is meant where the loop counts."""

    order: tuple[int, ...]
    head: Head
    operands: tuple[int, ...]


def sliced(terms: Terms, loop: Opened, index: int) -> Slice:
    """The loop as one carry sees it."""
    order = carries_behind(terms, loop, index)
    arguments = tuple(loop.bound[one] for one in order)
    types = tuple(loop.types[one] for one in order)
    roots = *(loop.next[one] for one in order), loop.state
    if loop.counts:
        inside = Inside((loop.lead, *arguments, loop.state), roots)
        types = (terms.head_of(loop.lead).types[0], *types)
    else:
        inside = Inside((*arguments, loop.state), (loop.lead, *roots))
    body, captures = terms.close(inside, types, -1, loop.depth)
    head = Head("history" if loop.counts else "loop", WHILE, types=(loop.types[index],), bodies=(body,))
    return Slice(tuple(order), head, (*(loop.initial[one] for one in order), *captures))


def carries_behind(terms: Terms, loop: Opened, index: int) -> list[int]:
    """This carry, those that it is computed from, and those of the condition, in the order of discovery."""
    number = {bound: one for one, bound in enumerate(loop.bound)}
    order, seen = [index], set[int]()
    if not loop.counts:
        _discover(terms, loop, loop.lead, number, seen, order)
    for one in order:  # It grows meanwhile.
        _discover(terms, loop, loop.next[one], number, seen, order)
    return order


def _discover(terms: Terms, loop: Opened, root: int, number: dict[int, int], seen: set[int], order: list[int]) -> None:
    pending = [root]
    while pending:
        term = pending.pop()
        if term in seen or terms.depth_of(term) < loop.depth:
            continue
        seen.add(term)
        if (carry := number.get(term)) is not None:
            if carry not in order:
                order.append(carry)
            continue
        pending.extend(reversed(terms.operands_of(term)))


def reaches(terms: Terms, roots: tuple[int, ...], wanted: frozenset[int], depth: int) -> bool:
    """Whether one of the roots is computed from one of the terms, all of which are as deep as `depth`."""
    pending, seen = list(roots), set[int]()
    while pending:
        term = pending.pop()
        if term in wanted:
            return True
        if term not in seen and terms.depth_of(term) >= depth:
            seen.add(term)
            pending.extend(terms.operands_of(term))
    return False
