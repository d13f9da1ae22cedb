"""Terms for stacks that a loop writes: a stack becomes an array of rows, and a read of a stack becomes the stored
value.

A *stack* is a carry of a counting loop. Every iteration writes one slice along the first dimension, in bounds, at an
index that increases or decreases by one. The loop does nothing else with the carry, and all extents are static. Slice j
of the result of such a loop is the value that an iteration stored there, if an iteration is proved to have stored one:

    dynamic_slice(history(trips, dynamic_update_slice(s, u(n, x), n)), j)   ->   u(j, history(j, x))

A completely written stack is an array of rows. Each row is a function of its index. Therefore two stacks with equal
rows are equal, even if loops write them in different orders:

    history(8, dynamic_update_slice(s, u(n, x), 7 - n))       rows(8: j -> u(7 - j, history(7 - j, x)))

A stack of stacks that is reshaped into one stack is an array of rows, if its rows depend on the two indices only
through the index in the reshaped array:

    reshape(rows(2: p -> rows(4: j -> u(4 * p + j))))         rows(8: t -> u(t))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.dialects.builtin import DenseArrayBase, TensorType

from ..expressions.terms import Head, OpenRegion, RegionTerm, Terms
from .integers import Integers, Sum, whole
from .loop_terms import CountingLoop, reaches


@dataclass(frozen=True)
class StoredSlice:
    """The slices that a loop stores in a stack.

    Attributes:
        loop: The loop; its first carry is the stack.
        trips: Number of iterations.
        body: The slice that an iteration stores, closed over the iteration number and the carries.
        captures: The captures of `body`.
        types: Id of the type of a slice.
        scale: 1 or -1. Iteration n writes index `scale * n + offset` of the first dimension.
        offset: See `scale`.
    """

    loop: CountingLoop
    trips: int
    body: RegionTerm
    captures: tuple[int, ...]
    types: tuple[int, ...]
    scale: int
    offset: int

    def written_at(self, place: Sum) -> Sum:
        """Return the iteration that stores the slice at index `place`."""
        return place.plus(whole(-self.offset)).times(self.scale)


def stored_by(terms: Terms, integers: Integers, loop: CountingLoop, trips: int) -> StoredSlice | None:
    """Return the slices that a loop stores in its first carry, or None if the carry is not proved to be a stack."""
    update = terms.head_of(loop.next[0])
    if update.kind != "operation" or update.name != "stablehlo.dynamic_update_slice" or update.attributes:
        return None
    stack, slice_, start, *others = terms.operands_of(loop.next[0])
    if stack != loop.carries[0] or any(integers.constant(start) != 0 for start in others):
        return None
    if reaches(terms, (slice_, start, *loop.next[1:]), frozenset(loop.carries[:1]), loop.depth):
        return None
    types = terms.types_of(slice_)
    shape, part = extents(terms, loop.types[:1]), extents(terms, types)
    if not shape or part is None or part != (1, *shape[1:]):
        return None
    index = integers.sum_of(start)
    scale = dict(index.parts).get(loop.iteration)
    if len(index.parts) != 1 or scale not in (1, -1) or not _is_within(index, scale, trips, shape[0]):
        return None
    arguments = (loop.iteration, *loop.carries, loop.state)
    types_inside = (terms.head_of(loop.iteration).types[0], *loop.types)
    number, captures = terms.close(OpenRegion(arguments, (slice_, loop.state)), types_inside, -1, loop.depth)
    return StoredSlice(
        loop=loop,
        trips=trips,
        body=terms.bodies[number],
        captures=captures,
        types=types,
        scale=scale,
        offset=index.offset,
    )


def _is_within(place: Sum, scale: int, trips: int, extent: int) -> bool:
    """Return whether the indices of all iterations are in bounds. If so, no index is clamped, and no two iterations
    write the same slice."""
    return all(0 <= scale * number + place.offset < extent for number in (0, trips - 1))


def extents(terms: Terms, types: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the extents of a tensor type, or None if an extent is dynamic, because two values of a dynamic type may
    have different extents."""
    type_ = terms.attributes.attribute(types[0]) if len(types) == 1 else None
    return type_.get_shape() if isinstance(type_, TensorType) and type_.has_static_shape() else None


def keeps_order(terms: Terms, number: int) -> bool:
    """Return whether a term only reshapes its operand and therefore has the same elements in the same order.

    This is true of a reshape, and of a broadcast that only adds dimensions of extent 1.
    """
    head = terms.head_of(number)
    if head.kind != "operation" or head.name not in ("stablehlo.reshape", "stablehlo.broadcast_in_dim"):
        return False
    before, after = extents(terms, terms.types_of(terms.operands_of(number)[0])), extents(terms, head.types)
    if before is None or after is None:
        return False
    if head.name == "stablehlo.reshape":
        return not head.attributes
    attributes = terms.attributes.by_name(head.attributes)
    dimensions = attributes.pop("broadcast_dimensions", None)
    if attributes or not isinstance(dimensions, DenseArrayBase):
        return False
    listed = list(dimensions.get_values())
    return listed == sorted(set(listed)) and [extent for extent in before if extent != 1] == [
        extent for extent in after if extent != 1
    ]


class RowTerms(Protocol):
    """The part of the `LoopRules` interface that the rules for stack rows use."""

    terms: Terms
    integers: Integers

    def instance(self, body: RegionTerm, arguments: Sequence[int], captures: Sequence[int]) -> list[int]: ...

    def stored_in(self, source: int) -> StoredSlice | None: ...

    def at(self, stored: StoredSlice, number: int) -> int: ...

    def make(self, head: Head, operands: tuple[int, ...]) -> int: ...


class RowTermBuilder:
    """Builds `rows` terms, which represent completely written stacks."""

    def __init__(self, rules: RowTerms):
        self._rules = rules
        self._terms = rules.terms
        self._integers = rules.integers
        self._no_state = rules.terms.term(Head("state", "nothing"))
        self._of_histories = dict[int, int]()

    def of_history(self, number: int) -> int:
        """Return the `rows` term of a stack that a loop writes, or the `history` term itself if the loop does not write
        all rows."""
        if number not in self._of_histories:
            self._of_histories[number] = self._row_of_stored(number)
        return self._of_histories[number]

    def with_captures(self, head: Head, operands: tuple[int, ...]) -> int:
        """Return the normal form of the `rows` term with this head and these operands."""
        depth = 1 + max(map(self._terms.depth_of, operands), default=0)
        place = self._place(self._terms.bodies[head.bodies[0]].types, depth, self._extent(head))
        return self._close(place, self._instance(head, operands, place), head.types, depth)

    def read(self, number: int, place: Sum, types: tuple[int, ...]) -> int | None:
        """Return the row at index `place`. Return None if the index is not proved to be in bounds, or if the types of
        the row are not `types`.
        """
        head = self._terms.head_of(number)
        index = self._terms.bodies[head.bodies[0]].types
        within = self._integers.interval(place)
        if within is None or within[0] < 0 or within[1] >= self._extent(head):
            return None
        if any(self._terms.head_of(base).types != index for base, _ in place.parts):
            return None
        at = self._integers.term_of_sum(place, Head("variable", "", types=index))
        row = self._instance(head, self._terms.operands_of(number), at)
        return row if self._terms.types_of(row) == types else None

    def join(self, number: int, types: tuple[int, ...]) -> int | None:
        """Return the `rows` term of a stack of stacks that is reshaped to this type, or None if its rows are
        unknown."""
        head = self._terms.head_of(number)
        outer, result = extents(self._terms, head.types), extents(self._terms, types)
        if outer is None or result is None or len(outer) < 2 or result != (outer[0] * outer[1], *outer[2:]):
            return None
        index, depth = self._terms.bodies[head.bodies[0]].types, 1 + self._terms.depth_of(number)
        place, total = self._place(index, depth, outer[0]), self._place(index, depth, result[0])
        row = self._instance(head, self._terms.operands_of(number), place)
        while keeps_order(self._terms, row):
            (row,) = self._terms.operands_of(row)
        inner = self._terms.head_of(row)
        if inner.kind != "rows" or extents(self._terms, inner.types) != outer[1:]:
            return None
        if self._terms.bodies[inner.bodies[0]].types != index:
            return None
        remaining = self._integers.sum_of(total).minus(self._integers.sum_of(place).times(outer[1]))
        at = self._integers.term_of_sum(remaining, self._terms.head_of(total))
        value = self._instance(inner, self._terms.operands_of(row), at)
        if reaches(self._terms, (value,), frozenset({place}), depth):
            return None
        return self._close(total, value, types, depth)

    def with_constraint(self, number: int, constraint: Head) -> int:
        """Return a stack with a sharding constraint on each of its rows.

        Args:
            number: The `rows` term of the stack.
            constraint: The head of the constraint on the stack.
        """
        place, row = self.open_row(number)
        constrained = self._rules.make(constraint._replace(types=self._terms.types_of(row)), (row,))
        return self._close(place, constrained, self._terms.types_of(number), self._terms.depth_of(place))

    def open_row(self, number: int) -> tuple[int, int]:
        """Return a fresh row index, and the row at this index of a `rows` term."""
        head = self._terms.head_of(number)
        index, depth = self._terms.bodies[head.bodies[0]].types, 1 + self._terms.depth_of(number)
        place = self._place(index, depth, self._extent(head))
        return place, self._instance(head, self._terms.operands_of(number), place)

    def _row_of_stored(self, number: int) -> int:
        types = self._terms.types_of(number)
        stored = self._rules.stored_in(number)
        shape = extents(self._terms, types)
        if stored is None or shape is None or stored.trips != shape[0]:
            return number
        like = self._terms.head_of(stored.loop.iteration)
        depth = 1 + self._terms.depth_of(number)
        place = self._place(like.types, depth, shape[0])
        iteration = self._integers.term_of_sum(stored.written_at(self._integers.sum_of(place)), like)
        return self._close(place, self._rules.at(stored, iteration), types, depth)

    def _place(self, types: tuple[int, ...], depth: int, extent: int) -> int:
        """Return a fresh row index below `extent`."""
        place = self._terms.fresh("variable", types, depth)
        self._integers.ranges[place] = 0, extent - 1
        return place

    def _extent(self, head: Head) -> int:
        shape = extents(self._terms, head.types)
        assert shape, "a `rows` term has static extents"
        return shape[0]

    def _instance(self, head: Head, operands: tuple[int, ...], place: int) -> int:
        body = self._terms.bodies[head.bodies[0]]
        return self._rules.instance(body, [place, self._no_state], operands)[body.roots[0]]

    def _close(self, place: int, row: int, types: tuple[int, ...], depth: int) -> int:
        inside = OpenRegion((place, self._terms.fresh("state", (), depth)), (row,))
        body, captures = self._terms.close(inside, self._terms.head_of(place).types, -1, depth)
        return self._terms.term(Head("rows", "of a stack", types=types, bodies=(body,)), captures)


def part_of_part(rules: RowTerms, source: int, place: Sum) -> tuple[int, Sum] | None:
    """Return the array and the index from which a slice of a slice reads, or None if the term is not such a slice:

    dynamic_slice(reshape(dynamic_slice(reshape(w), q)), r) = dynamic_slice(w, k * q + r)
    """
    terms, integers = rules.terms, rules.integers
    part = _operand(terms, source, "stablehlo.reshape")
    shape = extents(terms, terms.types_of(source))
    if part is None or not shape or extents(terms, terms.types_of(part)) != (1, *shape):
        return None
    head = terms.head_of(part)
    if (head.kind, head.name, [name for name, _ in head.attributes]) != (
        "operation",
        "stablehlo.dynamic_slice",
        ["slice_sizes"],
    ):
        return None
    split, first, *others = terms.operands_of(part)
    array = _operand(terms, split, "stablehlo.reshape")
    parts = extents(terms, terms.types_of(split))
    if array is None or parts is None or any(integers.constant(start) != 0 for start in others):
        return None
    if extents(terms, terms.types_of(array)) != (parts[0] * shape[0], *shape[1:]) or parts[1:] != shape:
        return None
    outer = integers.sum_of(first)
    for number, extent in ((outer, parts[0]), (place, shape[0])):
        within = integers.interval(number)
        if within is None or within[0] < 0 or within[1] >= extent:
            return None
    return array, outer.times(shape[0]).plus(place)


def _operand(terms: Terms, number: int, name: str) -> int | None:
    """Return the first operand of a term if the term is an operation with this name and without attributes, else
    None."""
    head = terms.head_of(number)
    if (head.kind, head.name, head.attributes) != ("operation", name, ()):
        return None
    return terms.operands_of(number)[0]
