"""Results of a function that are tuples, taken for their elements: only on request of the caller.

return %t : tuple<A, tuple<B>>      is      return %t[0], %t[1][0] : A, B
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import IntegerAttr, TupleType, i32
from xdsl.ir import Attribute

from .terms import Head, Terms

TUPLE, ELEMENT = "stablehlo.tuple", "stablehlo.get_tuple_element"


def leaf_types(types: Iterable[Attribute]) -> list[Attribute]:
    """The types, those of tuples as the types of their elements."""
    return [leaf for type_ in types for leaf in (leaf_types(type_.types) if isinstance(type_, TupleType) else [type_])]


def leaves(terms: Terms, number: int, type_: Attribute) -> list[int]:
    """The terms of the elements of a value of this type."""
    if not isinstance(type_, TupleType):
        return [number]
    elements = [_element(terms, number, index, part) for index, part in enumerate(type_.types)]
    return [leaf for element, part in zip(elements, type_.types, strict=True) for leaf in leaves(terms, element, part)]


def _element(terms: Terms, number: int, index: int, type_: Attribute) -> int:
    """The value that a tuple was made of, or the term of `stablehlo.get_tuple_element`."""
    head = terms.head_of(number)
    if (head.kind, head.name, head.attributes, head.bodies) == ("operation", TUPLE, (), ()):
        return terms.operands_of(number)[index]
    attributes = (("index", terms.attributes.number(IntegerAttr(index, i32))),)
    return terms.term(Head("operation", ELEMENT, attributes, (terms.attributes.number(type_),)), (number,))
