"""Linear normal form of scalar integer terms: `(8 - i) - 1` becomes `7 - i`, and `q * 4 + r` becomes a single term. The
head of a term is its operation without the operands (`terms.py`).

Sums and products with constants are exact modulo a power of two, so the normal form is correct even on overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import i1

from ...dialects.constants.dense import DenseAttr, to_numpy
from ...dialects.stablehlo.attributes import ComparisonDirection, ComparisonType
from ...support.type_guards import is_integer_type, is_tensor, is_unsigned
from ..expressions.terms import Head, Terms
from ..operations.comparisons import comparison_of

Interval = tuple[int, int]
CONSTANT = "stablehlo.constant"
MAX_COUNTER = 2**31 - 1
"""Largest value of counters and iteration numbers that the rules support."""


class Sum(NamedTuple):
    """Linear combination `scale * base + … + offset`. `parts`: pairs of a base term and a nonzero scale, sorted by
    base."""

    parts: tuple[tuple[int, int], ...]
    offset: int

    @staticmethod
    def of(scales: Mapping[int, int], offset: int) -> Sum:
        return Sum(tuple(sorted((base, scale) for base, scale in scales.items() if scale)), offset)

    def times(self, factor: int) -> Sum:
        return Sum.of({base: factor * scale for base, scale in self.parts}, factor * self.offset)

    def plus(self, other: Sum) -> Sum:
        scales = dict(self.parts)
        for base, scale in other.parts:
            scales[base] = scales.get(base, 0) + scale
        return Sum.of(scales, self.offset + other.offset)

    def minus(self, other: Sum) -> Sum:
        return self.plus(other.times(-1))


def whole(number: int) -> Sum:
    """Return a constant as a sum."""
    return Sum((), number)


class Integers:
    """Makes the normal forms of the scalar integers in a table of terms.

    `ranges`: inclusive lower and upper bounds of terms.
    """

    def __init__(self, terms: Terms):
        self._terms = terms
        self.ranges = dict[int, Interval]()

    def constant(self, number: int) -> int | None:
        """Return the value of a term that is a constant scalar integer of at least 32 bits, or None for any other term.

        A constant with further attributes returns None, because a sum would lose these attributes.
        """
        head = self._terms.head_of(number)
        if head.kind != "operation" or head.name != "stablehlo.constant" or self.width(head) is None:
            return None
        if [name for name, _ in head.attributes] != ["value"]:
            return None
        value = self._terms.attributes.attribute(head.attributes[0][1])
        return int(to_numpy(value).reshape(-1)[0]) if isinstance(value, DenseAttr) else None

    def width(self, head: Head) -> int | None:
        """Return the width, in bits, of the scalar integer type of a head; None for other types and for widths below 32
        bits."""
        type_ = self._terms.attributes.attribute(head.types[0]) if len(head.types) == 1 else None
        if type_ is None or not is_tensor(type_) or type_.get_shape() or not is_integer_type(type_.element_type):
            return None
        bits = type_.element_type.bitwidth
        return bits if bits >= 32 else None

    def sum_of(self, number: int) -> Sum:
        """Return the sum that equals a term. A term that is neither a constant nor an `index` term is its own base."""
        if (value := self.constant(number)) is not None:
            return whole(value)
        head = self._terms.head_of(number)
        if head.kind != "index":
            return Sum(((number, 1),), 0)
        *scales, offset = head.numbers
        return Sum.of(dict(zip(self._terms.operands_of(number), scales, strict=True)), offset)

    def expand(self, head: Head, operands: tuple[int, ...]) -> Sum:
        """Return the sum of an `index` term with this head and these operands. Operands that are sums are expanded."""
        *scales, offset = head.numbers
        total = whole(offset)
        for scale, operand in zip(scales, operands, strict=True):
            total = total.plus(self.sum_of(operand).times(scale))
        return total

    def term_of_sum(self, total: Sum, like: Head) -> int:
        """Return the term of a sum, with the same type as `like`.

        The parts of the sum are ordered by nesting depth, outermost first, so that the term does not depend on the
        order in which the bases were created.
        """
        bits = self.width(like)
        assert bits is not None, "only integers have sums"
        offset = _wrap(total.offset, bits)
        parts = [(base, scale) for base, part in total.parts if (scale := _wrap(part, bits))]
        if not parts:
            return self._constant_term(offset, like)
        if offset == 0 and len(parts) == 1 and parts[0][1] == 1:
            return parts[0][0]
        parts.sort(key=lambda part: (self._terms.depth_of(part[0]), part[0]))
        head = Head("index", "", types=like.types, numbers=(*(scale for _, scale in parts), offset))
        return self._terms.term(head, tuple([base for base, _ in parts]))

    def _constant_term(self, value: int, like: Head) -> int:
        type_ = self._terms.attributes.attribute(like.types[0])
        assert is_tensor(type_), "only integers have sums"
        attribute = DenseAttr.from_numpy(np.array(value), type_.element_type)
        key = self._terms.attributes.number(attribute)
        head = Head(
            kind="operation",
            name="stablehlo.constant",
            attributes=(("value", key),),
            types=like.types,
            bodies=(),
            properties=("value",),
        )
        return self._terms.term(head)

    def normal_form(self, head: Head, operands: tuple[int, ...]) -> int | None:
        """Return the normal form of an addition, a subtraction, or a product with a constant; None for any other
        operation."""
        if head.name not in _LINEAR or self.width(head) is None or head.bodies or head.attributes:
            return None
        a, b = map(self.sum_of, operands)
        match head.name:
            case "stablehlo.add":
                return self.term_of_sum(a.plus(b), head)
            case "stablehlo.subtract":
                return self.term_of_sum(a.minus(b), head)
            case _ if a.parts and b.parts:
                return None
            case _:
                return self.term_of_sum(b.times(a.offset) if b.parts else a.times(b.offset), head)

    def decide_comparison(self, head: Head, operands: tuple[int, ...]) -> int | None:
        """Return the constant result of a comparison of two scalar integers if their ranges determine it, else None."""
        terms = [self._terms.head_of(operand) for operand in operands]
        if len(operands) != 2 or any(self.width(term) is None for term in terms) or head.bodies:
            return None
        comparison = comparison_of(self._terms.attributes.by_name(head.attributes))
        if comparison is None or comparison.order not in (None, ComparisonType.SIGNED, ComparisonType.UNSIGNED):
            return None
        decide = _DIRECTIONS.get(comparison.direction)
        intervals = [self.interval(self.sum_of(operand)) for operand in operands]
        if decide is None or intervals[0] is None or intervals[1] is None:
            return None
        # Interpreted as an unsigned integer, a negative number is large.
        is_unsigned = comparison.order is ComparisonType.UNSIGNED or any(self.is_unsigned(term) for term in terms)
        if is_unsigned and min(intervals[0][0], intervals[1][0]) < 0:
            return None
        verdict = decide(intervals[0], intervals[1])
        return None if verdict is None else self._truth_term(verdict, head)

    def is_unsigned(self, head: Head) -> bool:
        """Return whether the type of a head is an unsigned scalar integer."""
        type_ = self._terms.attributes.attribute(head.types[0])
        return is_tensor(type_) and is_unsigned(type_.element_type)

    def truth(self, number: int) -> bool | None:
        """Return the value of a term that is a scalar constant of type i1, or None for any other term."""
        head = self._terms.head_of(number)
        if (head.kind, head.name, [name for name, _ in head.attributes]) != ("operation", CONSTANT, ["value"]):
            return None
        value = self._terms.attributes.attribute(head.attributes[0][1])
        is_scalar = isinstance(value, DenseAttr) and not value.type.get_shape() and value.type.element_type == i1
        return bool(to_numpy(value).reshape(-1)[0]) if isinstance(value, DenseAttr) and is_scalar else None

    def _truth_term(self, value: bool, like: Head) -> int | None:
        type_ = self._terms.attributes.attribute(like.types[0])
        if not is_tensor(type_) or type_.get_shape() or type_.element_type != i1:
            return None
        key = self._terms.attributes.number(DenseAttr.from_numpy(np.array(value), i1))
        return self._terms.term(Head("operation", CONSTANT, (("value", key),), like.types))

    def interval(self, total: Sum) -> Interval | None:
        """Return inclusive bounds of a sum; None if they are unknown, or if the sum may overflow."""
        low = high = total.offset
        for base, scale in total.parts:
            if (interval := self.ranges.get(base)) is None:
                return None
            ends = sorted(scale * end for end in interval)
            low, high = low + ends[0], high + ends[1]
        return (low, high) if low >= -MAX_COUNTER and high <= MAX_COUNTER else None


def _less(interval: Interval, other: Interval) -> bool | None:
    if interval[1] < other[0]:
        return True
    return False if interval[0] >= other[1] else None


def _negate(verdict: bool | None) -> bool | None:
    return None if verdict is None else not verdict


_DIRECTIONS: dict[ComparisonDirection, Callable[[Interval, Interval], bool | None]] = {
    ComparisonDirection.LT: _less,
    ComparisonDirection.GT: lambda left, right: _less(right, left),
    ComparisonDirection.GE: lambda left, right: _negate(_less(left, right)),
    ComparisonDirection.LE: lambda left, right: _negate(_less(right, left)),
}
_LINEAR = frozenset({"stablehlo.add", "stablehlo.subtract", "stablehlo.multiply"})
"""Operations with a normal form. `analysis/step/counted_loops.py` has a table of its own, because the proof shares no
facts with the passes."""


def _wrap(number: int, bits: int) -> int:
    return (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
