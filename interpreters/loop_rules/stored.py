"""What the iterations of a loop store in a stack, so that reading a stack is computing what was stored.

A *stack* is a carry of a loop that counts which writes, in every iteration, a slice at the place of its number (or
counted from the end), within the first dimension, and that the loop does with nothing else; all extents are known.
Slice j of what such a loop returns is what the iteration that wrote it has stored,
wherever it is known that one did:

    dynamic_slice(history(trips, dynamic_update_slice(s, u(n, x), n)), j)   ->   u(j, history(j, x))
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase, TensorType

from ..terms import Body, Inside, Terms
from .integers import Integers, Sum, whole
from .opened import Opened, reaches


@dataclass(frozen=True)
class Stored:
    """`body`, `captures`: the slice, closed over the number of the iteration and the carries; its type is `types`. In
    iteration n of `trips` it is written at `scale * n + offset` of the first dimension."""

    loop: Opened
    trips: int
    body: Body
    captures: tuple[int, ...]
    types: tuple[int, ...]
    scale: int
    offset: int

    def written_at(self, place: Sum) -> Sum:
        """The iteration that stores at this place."""
        return place.plus(whole(-self.offset)).times(self.scale)


def stored_by(terms: Terms, integers: Integers, loop: Opened, trips: int) -> Stored | None:
    """What the loop has stored in its first carry after this many iterations; None where that is no stack, or not known
    to be one."""
    update = terms.head_of(loop.next[0])
    if update.kind != "operation" or update.name != "stablehlo.dynamic_update_slice" or update.attributes:
        return None
    stack, slice_, place, *others = terms.operands_of(loop.next[0])
    if stack != loop.bound[0] or any(integers.constant(one) != 0 for one in others):
        return None
    if reaches(terms, (slice_, place, *loop.next[1:]), frozenset(loop.bound[:1]), loop.depth):
        return None
    types = terms.types_of(slice_)
    shape, part = extents(terms, loop.types[:1]), extents(terms, types)
    if not shape or part is None or part != (1, *shape[1:]):
        return None
    where = integers.sum_of(place)
    scale = dict(where.parts).get(loop.lead)
    if len(where.parts) != 1 or scale not in (1, -1) or not _is_within(where, scale, trips, shape[0]):
        return None
    arguments = (loop.lead, *loop.bound, loop.state)
    types_inside = (terms.head_of(loop.lead).types[0], *loop.types)
    number, captures = terms.close(Inside(arguments, (slice_, loop.state)), types_inside, -1, loop.depth)
    return Stored(loop, trips, terms.bodies[number], captures, types, scale, where.offset)


def _is_within(place: Sum, scale: int, trips: int, extent: int) -> bool:
    """Whether no place is moved to be within the stack, so that no two iterations write the same one."""
    return all(0 <= scale * number + place.offset < extent for number in (0, trips - 1))


def extents(terms: Terms, types: tuple[int, ...]) -> tuple[int, ...] | None:
    """The extents; None where one is not known: two of the same type may have different ones."""
    type_ = terms.attributes.attribute(types[0]) if len(types) == 1 else None
    return type_.get_shape() if isinstance(type_, TensorType) and type_.has_static_shape() else None


def keeps_order(terms: Terms, number: int) -> bool:
    """Whether the term holds the elements of its operand in the same order, and no others: a reshape, or a broadcast
    that only gives it dimensions of extent 1."""
    head = terms.head_of(number)
    if head.kind != "operation" or head.name not in ("stablehlo.reshape", "stablehlo.broadcast_in_dim"):
        return False
    before, after = extents(terms, terms.types_of(terms.operands_of(number)[0])), extents(terms, head.types)
    if before is None or after is None:
        return False
    if head.name == "stablehlo.reshape":
        return not head.attributes
    said = {name: terms.attributes.attribute(value) for name, value in head.attributes}
    dimensions = said.pop("broadcast_dimensions", None)
    if said or not isinstance(dimensions, DenseArrayBase):
        return False
    listed = list(dimensions.get_values())
    return listed == sorted(set(listed)) and [one for one in before if one != 1] == [one for one in after if one != 1]
