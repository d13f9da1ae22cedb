"""A loop as terms: its carries, their values after an iteration, and the carries that no iteration changes.

Each result of a loop is a term of its own over the carries that it depends on: its own, and those that this one is
computed from, in the order of discovery. Other carries, and the order of carries in the program, do not matter.

In a loop that counts by ones from a constant to a constant the counter is no carry, but the iteration number, which
begins at 0, plus a constant. Carry x of such a loop at the start of iteration n is `history(n, x)`, and so its result
is `history(trips, x)`: the trip count is no part of the body. A result of another loop is a `loop` term, which includes
the condition.

while(%a = %x) do { %r = while(%b = %a) do { return %b }; return %r }       both carries are %x throughout
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from xdsl.ir import Operation, OpResult, SSAValue

from ..operation_parts import attributes_of, name_of
from ..terms import Head, Inside, Terms
from .integers import Integers

_IDENTITIES = frozenset({"recompute.depend", "stablehlo.optimization_barrier"})


class HandedOn:
    """Finds invariant carries; analyses each loop once, whatever the nesting."""

    def __init__(self):
        self._carries = dict[Operation, frozenset[int]]()

    def carries(self, loop: Operation) -> frozenset[int]:
        """Return the carries that an iteration yields unchanged. `loop`: with a condition and a body of one
        block each."""
        if loop not in self._carries:
            body = loop.regions[1].block
            following = () if body.last_op is None else body.last_op.operands
            pairs = zip(body.args, following, strict=False)
            self._carries[loop] = frozenset(
                index for index, (argument, value) in enumerate(pairs) if self._source(value) is argument
            )
        return self._carries[loop]

    def _source(self, value: SSAValue) -> SSAValue:
        """Return the source of a value, seen through barriers and loops."""
        while isinstance(value, OpResult) and not attributes_of(op := value.op):
            name = name_of(op)
            if not (
                name in _IDENTITIES or (name == "stablehlo.while" and _is_loop(op) and value.index in self.carries(op))
            ):
                break
            value = op.operands[value.index]
        return value


def _is_loop(op: Operation) -> bool:
    return len(op.regions) == 2 and all(len(region.blocks) == 1 for region in op.regions)


WHILE = "stablehlo.while"


@dataclass(frozen=True)
class Opened:
    """`bound`: fresh terms for the carries in the body. `initial`: their values before the loop. `next`: their values
    after an iteration. `types`: types of the carries. `lead`: if the loop `counts`, a fresh term for the iteration
    number; otherwise the condition. `state`: the effects before an iteration, which has none of its own."""

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
    """Carry `index` is `start`, `start` + 1, … in the iterations; `trips` is their number, at least one."""

    index: int
    start: int
    trips: int


def counter_of(
    terms: Terms, integers: Integers, condition: int, carries: tuple[int, ...], initial: tuple[int, ...]
) -> Counter | None:
    """Return the carry that the condition compares with a constant, provided that it grows by ones, which is not
    checked."""
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
    """Return whether a comparison is `LT`, with the signedness of its operands' type."""
    head = terms.head_of(condition)
    attributes = {name: terms.attributes.text(number).strip("<>").split()[-1:] for name, number in head.attributes}
    kind = ["UNSIGNED" if integers.is_unsigned(terms.head_of(terms.operands_of(condition)[0])) else "SIGNED"]
    is_less = attributes.pop("comparison_direction", []) == ["LT"]
    return is_less and attributes.pop("compare_type", kind) == kind and not attributes


def numbered(loop: Opened, derived: Container[int], number: int) -> Opened:
    """Return a counting loop over the iteration number, without the `derived` carries, which follow from it."""

    def without(listed: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(item for index, item in enumerate(listed) if index not in derived)

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
    """The part of a loop that one carry depends on. `order`: the carries, this one first. `head`, `operands`: those of
    the term; if the loop counts, without the iteration number."""

    order: tuple[int, ...]
    head: Head
    operands: tuple[int, ...]


def sliced(terms: Terms, loop: Opened, index: int) -> Slice:
    """Return the part of the loop that one carry depends on."""
    order = carries_behind(terms, loop, index)
    arguments = tuple(loop.bound[carry] for carry in order)
    types = tuple(loop.types[carry] for carry in order)
    roots = *(loop.next[carry] for carry in order), loop.state
    if loop.counts:
        inside = Inside((loop.lead, *arguments, loop.state), roots)
        types = (terms.head_of(loop.lead).types[0], *types)
    else:
        inside = Inside((*arguments, loop.state), (loop.lead, *roots))
    body, captures = terms.close(inside, types, -1, loop.depth)
    head = Head("history" if loop.counts else "loop", WHILE, types=(loop.types[index],), bodies=(body,))
    return Slice(tuple(order), head, (*(loop.initial[carry] for carry in order), *captures))


def carries_behind(terms: Terms, loop: Opened, index: int) -> list[int]:
    """Return this carry, those that it is computed from, and those of the condition, in the order of discovery."""
    number = {bound: carry for carry, bound in enumerate(loop.bound)}
    order, visited = [index], set[int]()
    if not loop.counts:
        _discover(terms, loop, loop.lead, number, visited, order)
    for carry in order:  # `_discover` appends to it.
        _discover(terms, loop, loop.next[carry], number, visited, order)
    return order


def _discover(
    terms: Terms, loop: Opened, root: int, number: dict[int, int], visited: set[int], order: list[int]
) -> None:
    pending = [root]
    while pending:
        term = pending.pop()
        if term in visited or terms.depth_of(term) < loop.depth:
            continue
        visited.add(term)
        if (carry := number.get(term)) is not None:
            if carry not in order:
                order.append(carry)
            continue
        pending.extend(reversed(terms.operands_of(term)))


def reaches(terms: Terms, roots: tuple[int, ...], target: frozenset[int], depth: int) -> bool:
    """Return whether a root is computed from one of the `target` terms, all of which have at least this depth."""
    pending, visited = list(roots), set[int]()
    while pending:
        term = pending.pop()
        if term in target:
            return True
        if term not in visited and terms.depth_of(term) >= depth:
            visited.add(term)
            pending.extend(terms.operands_of(term))
    return False
