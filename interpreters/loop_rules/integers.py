"""Scalar integers in terms: constants, and sums with constants in one form, so that `(8 - i) - 1` is `7 - i`.

Sums and differences are associative and commutative modulo a power of two, so the form is right whatever overflows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...dialects.dense import DenseAttr, to_numpy
from ...dialects.guards import is_integer_type, is_tensor
from ..terms import Head, Terms

Interval = tuple[int, int]


class Sum(NamedTuple):
    """`scale * base + offset`; `scale` is 1 or -1, or 0 where there is no base."""

    scale: int
    base: int
    offset: int


class Integers:
    """Reads and writes the integers of a table. `ranges`: for values that are known to lie between two numbers, both
    inclusive."""

    def __init__(self, terms: Terms):
        self._terms = terms
        self.ranges = dict[int, Interval]()

    def constant(self, number: int) -> int | None:
        """The integer that a term is, a scalar of at least 32 bits; None for any other term."""
        head = self._terms.head_of(number)
        if head.kind != "operation" or head.name != "stablehlo.constant" or self.width(head) is None:
            return None
        attributes = dict(head.attributes)
        value = self._terms.attributes.attribute(attributes["value"]) if "value" in attributes else None
        return int(to_numpy(value).reshape(-1)[0]) if isinstance(value, DenseAttr) else None

    def width(self, head: Head) -> int | None:
        """Bits of the scalar integer that a term with this head is; None where it is none, or a narrow one."""
        type_ = self._terms.attributes.attribute(head.types[0]) if len(head.types) == 1 else None
        if type_ is None or not is_tensor(type_) or type_.get_shape() or not is_integer_type(type_.element_type):
            return None
        bits = type_.element_type.bitwidth
        return bits if bits >= 32 else None

    def sum_of(self, number: int) -> Sum:
        """Every term as a sum; most are their own base."""
        if (value := self.constant(number)) is not None:
            return Sum(0, 0, value)
        head = self._terms.head_of(number)
        if head.kind != "index":
            return Sum(1, number, 0)
        scale, offset = map(int, head.name.split())
        return Sum(scale, self._terms.operands_of(number)[0], offset)

    def written(self, one: Sum, like: Head) -> int:
        """The term of a sum, of the type of `like`."""
        bits = self.width(like)
        assert bits is not None, "sums are of integers"
        offset = (one.offset + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
        if one.scale == 0:
            return self._written_constant(offset, like)
        if (one.scale, offset) == (1, 0):
            return one.base
        return self._terms.term(Head("index", f"{one.scale} {offset}", types=like.types), (one.base,))

    def _written_constant(self, value: int, like: Head) -> int:
        type_ = self._terms.attributes.attribute(like.types[0])
        assert is_tensor(type_), "sums are of integers"
        attribute = DenseAttr.from_numpy(np.array(value), type_.element_type)
        key = self._terms.attributes.number(attribute)
        head = Head("operation", "stablehlo.constant", (("value", key),), like.types, (), ("value",))
        return self._terms.term(head)

    def added(self, head: Head, operands: tuple[int, ...]) -> int | None:
        """A sum or a difference of which at most one part is no constant, in one form; None for any other term."""
        if head.name not in ("stablehlo.add", "stablehlo.subtract") or self.width(head) is None or head.bodies:
            return None
        if any(name != "value" for name, _ in head.attributes):
            return None
        a, b = map(self.sum_of, operands)
        sign = 1 if head.name == "stablehlo.add" else -1
        if a.scale and b.scale:
            return None
        base = a.base if a.scale else b.base
        return self.written(Sum(a.scale + sign * b.scale, base, a.offset + sign * b.offset), head)

    def interval(self, one: Sum) -> Interval | None:
        """Between which numbers it lies, as far as that is known."""
        if one.scale == 0:
            return one.offset, one.offset
        if (known := self.ranges.get(one.base)) is None:
            return None
        ends = sorted(one.scale * end + one.offset for end in known)
        return ends[0], ends[1]
