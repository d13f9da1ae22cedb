"""Loops as terms: the carries, their values after an iteration, and the carries that no iteration changes.

Each result of a loop is a term of its own over the carries on which it depends, in the order of discovery: its own
carry, and the carries from which this one is computed. Other carries, and the order of the carries in the program, do
not matter.

In a loop that counts in steps of one from a constant to a constant, the counter is not a carry: it is the iteration
number, which starts at 0, plus a constant. The value of carry x at the start of iteration n is the term `history(n,
x)`, so the result of the loop is `history(trips, x)`; the trip count is not part of the body. A result of any other
loop is a `loop` term, which includes the condition.

Invariant carries are found through nested loops:

    while(%a = %x) do { %r = while(%b = %a) do { return %b }; return %r }       both carries are %x throughout
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.stablehlo.attributes import ComparisonDirection, ComparisonType
from ...support.operations import name_of
from ..comparisons import comparison_of
from ..operation_parts import attributes_of
from ..terms import Head, OpenRegion, Terms
from .integers import Integers

IDENTITIES = frozenset({"recompute.depend", "stablehlo.optimization_barrier"})


class InvariantCarries:
    """Analysis of loop-invariant carries; each loop is analysed once, at any nesting depth."""

    def __init__(self):
        self._carries = dict[Operation, frozenset[int]]()

    def of(self, loop: Operation) -> frozenset[int]:
        """Return the indices of the carries that an iteration yields unchanged.

        `loop`: an operation whose condition and body have one block each.
        """
        if loop not in self._carries:
            body = loop.regions[1].block
            following = () if body.last_op is None else body.last_op.operands
            pairs = zip(body.args, following, strict=False)
            self._carries[loop] = frozenset(
                index for index, (argument, value) in enumerate(pairs) if self._source(value) is argument
            )
        return self._carries[loop]

    def _source(self, value: SSAValue) -> SSAValue:
        """Return the value from which a value is copied, through barriers and invariant carries of nested loops."""
        while isinstance(value, OpResult) and not attributes_of(op := value.op):
            name = name_of(op)
            if not (name in IDENTITIES or (name == "stablehlo.while" and _is_loop(op) and value.index in self.of(op))):
                break
            value = op.operands[value.index]
        return value


def _is_loop(op: Operation) -> bool:
    return len(op.regions) == 2 and all(len(region.blocks) == 1 for region in op.regions)


WHILE = "stablehlo.while"


LoopPart = Literal["condition", "body"]
"""One of the regions of a `stablehlo.while`."""


@dataclass(frozen=True)
class OpenLoop:
    """Loop as terms over fresh terms for its carries.

    Attributes:
        carries: The fresh terms of the carries in the body.
        initial: The values of the carries before the loop.
        next: The values of the carries after an iteration.
        types: Numbers of the types of the carries.
        state: Fresh term of the effects before an iteration, which has no effects of its own.
        depth: Nesting depth of the body.
    """

    carries: tuple[int, ...]
    initial: tuple[int, ...]
    next: tuple[int, ...]
    types: tuple[int, ...]
    state: int
    depth: int


@dataclass(frozen=True)
class ConditionalLoop(OpenLoop):
    """Loop that runs while a condition holds. `condition`: its term."""

    condition: int


@dataclass(frozen=True)
class CountingLoop(OpenLoop):
    """Loop that counts in steps of one to a constant. `iteration`: the fresh term of the iteration number, from 0."""

    iteration: int


AnyLoop = ConditionalLoop | CountingLoop


@dataclass(frozen=True)
class Counter:
    """Carry `index` of a counting loop: it is `start`, `start + 1`, … for `trips` iterations, at least one."""

    index: int
    start: int
    trips: int


def counter_of(
    terms: Terms, integers: Integers, condition: int, carries: tuple[int, ...], initial: tuple[int, ...]
) -> Counter | None:
    """Return the carry that the condition compares with a constant bound, or None.

    This function does not check that the carry grows by one in each iteration.
    """
    head = terms.head_of(condition)
    operands = terms.operands_of(condition)
    if head.kind != "operation" or head.name != "stablehlo.compare":
        return None
    index = next((index for index, carry in enumerate(carries) if carry == operands[0]), None)
    if index is None or (end := integers.constant(operands[1])) is None:
        return None
    if integers.width(terms.head_of(carries[index])) is None or not _is_less(terms, integers, condition):
        return None
    start = integers.constant(initial[index])
    return Counter(index, start, end - start) if start is not None and 0 <= start < end < 2**31 - 1 else None


def _is_less(terms: Terms, integers: Integers, condition: int) -> bool:
    """Return whether a comparison has the direction `LT` and the signedness of its operands' type."""
    comparison = comparison_of(terms.attributes.by_name(terms.head_of(condition).attributes))
    if comparison is None or comparison.direction is not ComparisonDirection.LT:
        return False
    is_unsigned = integers.is_unsigned(terms.head_of(terms.operands_of(condition)[0]))
    return comparison.order in (None, ComparisonType.UNSIGNED if is_unsigned else ComparisonType.SIGNED)


@dataclass(frozen=True)
class Slice:
    """Part of a loop on which one carry depends.

    Attributes:
        order: The carries in it, starting with this one.
        head: The head of the carry's term.
        operands: The operands of the carry's term, without the iteration number if the loop counts.
    """

    order: tuple[int, ...]
    head: Head
    operands: tuple[int, ...]


def slice_of_loop(terms: Terms, loop: AnyLoop, index: int) -> Slice:
    """Return the part of the loop on which carry `index` depends."""
    order = carries_behind(terms, loop, index)
    arguments = *(loop.carries[carry] for carry in order), loop.state
    roots = *(loop.next[carry] for carry in order), loop.state
    types = tuple(loop.types[carry] for carry in order)
    match loop:
        case CountingLoop(iteration=iteration):
            kind, inside = "history", OpenRegion((iteration, *arguments), roots)
            types = (terms.head_of(iteration).types[0], *types)
        case ConditionalLoop(condition=condition):
            kind, inside = "loop", OpenRegion(arguments, (condition, *roots))
    body, captures = terms.close(inside, types, -1, loop.depth)
    head = Head(kind, WHILE, types=(loop.types[index],), bodies=(body,))
    return Slice(tuple(order), head, (*(loop.initial[carry] for carry in order), *captures))


def carries_behind(terms: Terms, loop: OpenLoop, index: int) -> list[int]:
    """Return the carries on which carry `index` depends, in the order of discovery, starting with the carry itself.

    Unless the loop counts, the carries that its condition reads are included.
    """
    index_of = {term: carry for carry, term in enumerate(loop.carries)}
    order, visited = [index], set[int]()
    if isinstance(loop, ConditionalLoop):
        _discover(terms, loop, root=loop.condition, index_of=index_of, visited=visited, order=order)
    for carry in order:  # `_discover` appends to it.
        _discover(terms, loop, root=loop.next[carry], index_of=index_of, visited=visited, order=order)
    return order


def _discover(
    terms: Terms, loop: OpenLoop, root: int, index_of: dict[int, int], visited: set[int], order: list[int]
) -> None:
    """Append the carries on which a root depends to `order`. `index_of`: the index of each carry by its term."""
    pending = [root]
    while pending:
        term = pending.pop()
        if term in visited or terms.depth_of(term) < loop.depth:
            continue
        visited.add(term)
        if (carry := index_of.get(term)) is not None:
            if carry not in order:
                order.append(carry)
            continue
        pending.extend(reversed(terms.operands_of(term)))


def reaches(terms: Terms, roots: tuple[int, ...], target: frozenset[int], depth: int) -> bool:
    """Return whether a root depends on one of the `target` terms, all of which have at least this depth."""
    pending, visited = list(roots), set[int]()
    while pending:
        term = pending.pop()
        if term in target:
            return True
        if term not in visited and terms.depth_of(term) >= depth:
            visited.add(term)
            pending.extend(terms.operands_of(term))
    return False
