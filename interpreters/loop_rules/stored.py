"""What the iterations of a loop store in a stack: one slice each, at a place of its own, and nobody looks meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase, TensorType

from ..terms import Body, Inside, Terms
from .integers import Integers, Sum
from .opened import Counter, Opened, counter_of


@dataclass(frozen=True)
class Stored:
    """`body`, `captures`: the slice, closed over the carries; its type is `types`. Where the counter is c, it lies at
    `scale * c + offset` of the first dimension."""

    loop: Opened
    counter: Counter
    body: Body
    captures: tuple[int, ...]
    types: tuple[int, ...]
    scale: int
    offset: int

    def counter_at(self, place: Sum) -> Sum:
        """What the counter is in the iteration that stores at this place."""
        return Sum(self.scale * place.scale, place.base, self.scale * (place.offset - self.offset))


def stored_by(terms: Terms, integers: Integers, loop: Opened, index: int) -> Stored | None:
    """What the loop stores in this carry; None where it is no stack, or not known to be one."""
    counter, update = counter_of(terms, integers, loop), terms.head_of(loop.next[index])
    if counter is None or update.name != "stablehlo.dynamic_update_slice" or update.attributes:
        return None
    stack, slice_, place, *others = terms.operands_of(loop.next[index])
    if update.kind != "operation" or stack != loop.bound[index] or any(integers.constant(one) != 0 for one in others):
        return None
    elsewhere = [loop.condition, slice_, place, *(one for at, one in enumerate(loop.next) if at != index)]
    if _reaches(terms, elsewhere, loop.bound[index], loop.depth):
        return None
    where = integers.sum_of(place)
    if where.base != loop.bound[counter.index] or not _covers(where, counter):
        return None
    types = terms.head_of(slice_).types
    shape, part = _shape(terms, loop.types[index : index + 1]), _shape(terms, types)
    if shape is None or part is None or shape[:1] != (counter.trips,) or part != (1, *shape[1:]):
        return None
    inside = Inside((*loop.bound, loop.state), (slice_, loop.state))
    number, captures = terms.close(inside, loop.types, -1, loop.depth)
    return Stored(loop, counter, terms.bodies[number], captures, types, where.scale, where.offset)


def _covers(place: Sum, counter: Counter) -> bool:
    """Whether it takes each of 0 … trips - 1 once."""
    last = counter.start + counter.trips - 1
    return abs(place.scale) == 1 and min(place.scale * end + place.offset for end in (counter.start, last)) == 0


def _reaches(terms: Terms, roots: Sequence[int], wanted: int, depth: int) -> bool:
    pending, seen = list(roots), set[int]()
    while pending:
        term = pending.pop()
        if term == wanted:
            return True
        if term not in seen and terms.depth_of(term) >= depth:
            seen.add(term)
            pending.extend(terms.operands_of(term))
    return False


def _shape(terms: Terms, types: tuple[int, ...]) -> tuple[int, ...] | None:
    type_ = terms.attributes.attribute(types[0]) if len(types) == 1 else None
    return type_.get_shape() if isinstance(type_, TensorType) else None


def keeps_order(terms: Terms, number: int) -> bool:
    """Whether the term holds the elements of its operand in the same order, and no others: a reshape, or a broadcast
    that only gives it dimensions of extent 1."""
    head = terms.head_of(number)
    if head.kind != "operation" or head.name not in ("stablehlo.reshape", "stablehlo.broadcast_in_dim"):
        return False
    if head.name == "stablehlo.reshape":
        return not head.attributes
    said = {name: terms.attributes.attribute(value) for name, value in head.attributes}
    dimensions = said.pop("broadcast_dimensions", None)
    before, after = _shape(terms, terms.head_of(terms.operands_of(number)[0]).types), _shape(terms, head.types)
    if said or not isinstance(dimensions, DenseArrayBase) or before is None or after is None:
        return False
    listed = list(dimensions.get_values())
    return listed == sorted(set(listed)) and [one for one in before if one != 1] == [one for one in after if one != 1]
