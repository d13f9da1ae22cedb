"""Values that the iterations of a loop store in a stack, so that a read of the stack equals the stored value.

A *stack* is a carry of a counting loop. Every iteration writes one slice of it, at the index of its number (or counted
from the end), within the first dimension. The loop does nothing else with the carry, and all extents are static. Slice
j of the result of such a loop is the value that an iteration stored there, provided that one is proved to have done so:

    dynamic_slice(history(trips, dynamic_update_slice(s, u(n, x), n)), j)   ->   u(j, history(j, x))
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase, TensorType

from ..terms import Inside, RegionTerm, Terms
from .integers import Integers, Sum, whole
from .opened import Opened, reaches


@dataclass(frozen=True)
class Stored:
    """`body`, `captures`: the slice, closed over the iteration number and the carries; its type is `types`. Iteration n
    of `trips` writes it at index `scale * n + offset` of the first dimension."""

    loop: Opened
    trips: int
    body: RegionTerm
    captures: tuple[int, ...]
    types: tuple[int, ...]
    scale: int
    offset: int

    def written_at(self, place: Sum) -> Sum:
        """The iteration that stores at this index."""
        return place.plus(whole(-self.offset)).times(self.scale)


def stored_by(terms: Terms, integers: Integers, loop: Opened, trips: int) -> Stored | None:
    """The values that the loop stores in its first carry in `trips` iterations; None if it is not proved to be a
    stack."""
    update = terms.head_of(loop.next[0])
    if update.kind != "operation" or update.name != "stablehlo.dynamic_update_slice" or update.attributes:
        return None
    stack, slice_, start, *others = terms.operands_of(loop.next[0])
    if stack != loop.bound[0] or any(integers.constant(start) != 0 for start in others):
        return None
    if reaches(terms, (slice_, start, *loop.next[1:]), frozenset(loop.bound[:1]), loop.depth):
        return None
    types = terms.types_of(slice_)
    shape, part = extents(terms, loop.types[:1]), extents(terms, types)
    if not shape or part is None or part != (1, *shape[1:]):
        return None
    index = integers.sum_of(start)
    scale = dict(index.parts).get(loop.lead)
    if len(index.parts) != 1 or scale not in (1, -1) or not _is_within(index, scale, trips, shape[0]):
        return None
    arguments = (loop.lead, *loop.bound, loop.state)
    types_inside = (terms.head_of(loop.lead).types[0], *loop.types)
    number, captures = terms.close(Inside(arguments, (slice_, loop.state)), types_inside, -1, loop.depth)
    return Stored(loop, trips, terms.bodies[number], captures, types, scale, index.offset)


def _is_within(place: Sum, scale: int, trips: int, extent: int) -> bool:
    """Whether all indices are in bounds, so that none is clamped and no two iterations write the same slice."""
    return all(0 <= scale * number + place.offset < extent for number in (0, trips - 1))


def extents(terms: Terms, types: tuple[int, ...]) -> tuple[int, ...] | None:
    """The extents of a type; None if one is dynamic: two values of that type may have different extents."""
    type_ = terms.attributes.attribute(types[0]) if len(types) == 1 else None
    return type_.get_shape() if isinstance(type_, TensorType) and type_.has_static_shape() else None


def keeps_order(terms: Terms, number: int) -> bool:
    """Whether the term holds exactly the elements of its operand in the same order: a reshape, or a broadcast that only
    adds dimensions of extent 1."""
    head = terms.head_of(number)
    if head.kind != "operation" or head.name not in ("stablehlo.reshape", "stablehlo.broadcast_in_dim"):
        return False
    before, after = extents(terms, terms.types_of(terms.operands_of(number)[0])), extents(terms, head.types)
    if before is None or after is None:
        return False
    if head.name == "stablehlo.reshape":
        return not head.attributes
    attributes = {name: terms.attributes.attribute(value) for name, value in head.attributes}
    dimensions = attributes.pop("broadcast_dimensions", None)
    if attributes or not isinstance(dimensions, DenseArrayBase):
        return False
    listed = list(dimensions.get_values())
    return listed == sorted(set(listed)) and [extent for extent in before if extent != 1] == [
        extent for extent in after if extent != 1
    ]
