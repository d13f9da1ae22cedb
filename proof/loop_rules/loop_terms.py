"""Represent loops as terms over their carries, and find invariant carries.

Each result of a loop is a separate term. The term contains the carry of the result and, in the order of discovery, the
carries from which this carry is computed. It does not depend on other carries or on the order of the carries in the
program.

In a loop that counts in steps of one from a constant to a constant, the counter is not a carry. It is the iteration
number, which starts at 0, plus a constant. The term `history(n, x)` is the value of carry x at the start of iteration
n, so the result of the loop is `history(trips, x)`. A result of any other loop is a `loop` term, which includes the
condition.

A carry is also invariant if nested loops pass it on unchanged:

    while(%a = %x) do { %r = while(%b = %a) do { return %b }; return %r }       both carries are always %x
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.stablehlo.attributes import ComparisonDirection, ComparisonType
from ...support.operations import name_of
from ..expressions.terms import Head, OpenRegion, Terms
from ..operations.comparisons import comparison_of
from ..operations.operation_parts import attributes_of
from .integers import Integers

IDENTITIES = frozenset({"recompute.depend", "stablehlo.optimization_barrier"})


class InvariantCarries:
    """Finds and caches the invariant carries of loops."""

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
        """Return the value from which `value` is copied, looking through barriers and invariant carries of nested
        loops."""
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
    """A loop that is translated to terms. Fresh terms represent its carries.

    Attributes:
        carries: The fresh terms that represent the carries in the body.
        initial: The values of the carries before the loop.
        next: The values of the carries after an iteration.
        types: Ids of the types of the carries.
        state: Fresh term for the state at the start of an iteration, before the iteration's own effects.
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
    """A loop that runs while a condition is true. `condition`: the term of the condition."""

    condition: int


@dataclass(frozen=True)
class CountingLoop(OpenLoop):
    """A loop that counts to a constant in steps of one. `iteration`: the fresh term for the iteration number, which
    starts at 0."""

    iteration: int


AnyLoop = ConditionalLoop | CountingLoop


@dataclass(frozen=True)
class Counter:
    """The counter of a counting loop: carry `index`, with the values `start`, `start + 1`, … in `trips` (at least one)
    iterations."""

    index: int
    start: int
    trips: int


def counter_of(
    terms: Terms, integers: Integers, condition: int, carries: tuple[int, ...], initial: tuple[int, ...]
) -> Counter | None:
    """Return the counter of a loop whose condition compares a carry with a constant bound, or None for other
    conditions.

    This function does not check that the carry increases by one in each iteration.
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
    """Return whether a comparison has the direction `LT` and the same signedness as the type of its operands."""
    comparison = comparison_of(terms.attributes.by_name(terms.head_of(condition).attributes))
    if comparison is None or comparison.direction is not ComparisonDirection.LT:
        return False
    is_unsigned = integers.is_unsigned(terms.head_of(terms.operands_of(condition)[0]))
    return comparison.order in (None, ComparisonType.UNSIGNED if is_unsigned else ComparisonType.SIGNED)


@dataclass(frozen=True)
class Slice:
    """The part of a loop on which one carry depends.

    Attributes:
        order: The indices of the carries in this part; the carry itself comes first.
        head: The head of the term of the carry.
        operands: The operands of the term of the carry, without the iteration number if the loop counts.
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
    """Return the indices of the carries on which carry `index` depends, in the order of discovery, the carry itself
    first.

    Unless the loop counts, this includes the carries that its condition reads.
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
    """Append to `order` the carries on which the term `root` depends.

    `index_of`: the index of each carry, by its term.
    """
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
    """Return whether any root depends on any of the terms in `target`. `depth`: the smallest nesting depth of the terms
    in `target`."""
    pending, visited = list(roots), set[int]()
    while pending:
        term = pending.pop()
        if term in target:
            return True
        if term not in visited and terms.depth_of(term) >= depth:
            visited.add(term)
            pending.extend(terms.operands_of(term))
    return False
