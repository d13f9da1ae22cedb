"""A loop as terms: what it carries, and what each carry becomes in an iteration.

A result of a loop is a `loop` term, of its own, made of the carries that it depends on alone: those of the condition,
its own, and all that these are computed from, in the order in which they are found. So carries that a result does not
depend on, and the order in which they are written, do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..terms import Head, Inside, Terms
from .integers import Integers


@dataclass(frozen=True)
class Opened:
    """`bound`: the carries, as the body sees them, none of them equal to any other term. `initial`: what they are
    before the loop. `next`: what the body makes of them. `condition`: whether it runs once more. `state`: the effects
    before an iteration, which has none. `types`: of the carries. `head`: what is written on the loop; `ending`: what is
    written where its regions end."""

    bound: tuple[int, ...]
    initial: tuple[int, ...]
    next: tuple[int, ...]
    condition: int
    state: int
    types: tuple[int, ...]
    depth: int
    head: Head
    ending: int


@dataclass(frozen=True)
class Counter:
    """Carry `index` is `start`, `start` + 1, … in the iterations, of which there are `trips`, at least one."""

    index: int
    start: int
    trips: int


def counter_of(terms: Terms, integers: Integers, loop: Opened) -> Counter | None:
    """The carry that counts, by ones, up to a constant."""
    head, operands = terms.head_of(loop.condition), terms.operands_of(loop.condition)
    if head.kind != "operation" or head.name != "stablehlo.compare" or not _is_less(terms, head):
        return None
    index = next((index for index, bound in enumerate(loop.bound) if bound == operands[0]), None)
    if index is None or (end := integers.constant(operands[1])) is None:
        return None
    start = integers.constant(loop.initial[index])
    if start is None or not 0 <= start < end < 2**31 - 1:
        return None
    step = integers.sum_of(loop.next[index])
    return Counter(index, start, end - start) if step == (1, loop.bound[index], 1) else None


def _is_less(terms: Terms, head: Head) -> bool:
    said = {name: terms.attributes.text(number) for name, number in head.attributes}
    return said.pop("comparison_direction", "").strip("<>").split()[-1:] == ["LT"] and set(said) <= {"compare_type"}


def sliced(terms: Terms, loop: Opened, index: int) -> int:
    """The term of one result."""
    order = _carries_behind(terms, loop, index)
    bound = tuple(loop.bound[one] for one in order)
    types = tuple(loop.types[one] for one in order)
    roots = (loop.condition, *(loop.next[one] for one in order), loop.state)
    body, captures = terms.close(Inside((*bound, loop.state), roots), types, loop.ending, loop.depth)
    position = order.index(index)
    head = loop.head._replace(kind="loop", name=str(position), types=(loop.types[index],), bodies=(body,))
    return terms.term(head, (*(loop.initial[one] for one in order), *captures))


def _carries_behind(terms: Terms, loop: Opened, index: int) -> list[int]:
    """The carries of the condition, this one, and those that they are computed from, in the order of discovery."""
    number = {bound: one for one, bound in enumerate(loop.bound)}
    order, seen = list[int](), set[int]()
    _discover(terms, loop, loop.condition, number, seen, order)
    if index not in order:
        order.append(index)
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
