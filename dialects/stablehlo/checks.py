"""What several verifiers ask of types. Each check raises `VerifyException` with the two things that disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, ComplexType, IntegerType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_complex_type, is_tensor, is_unsigned

Shape: TypeAlias = Sequence[int]
Takes: TypeAlias = Callable[[Attribute], bool]
"""Whether an operation is defined for an element type."""


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a value that the operation's definition says is a tensor."""
    assert is_tensor(value.type), "the definition of the operation asks for a tensor"
    return value.type.get_shape()


def element_of(value: SSAValue) -> Attribute:
    """The element type of a value that the operation's definition says is a tensor."""
    assert is_tensor(value.type), "the definition of the operation asks for a tensor"
    return value.type.element_type


def shapes_agree(one: Shape, other: Shape) -> bool:
    """Equal, or equal where both are static."""
    if len(one) != len(other):
        return False
    return all(a == b or DYNAMIC_INDEX in (a, b) for a, b in zip(one, other, strict=True))


def types_agree(one: Attribute, other: Attribute) -> bool:
    """Equal, or tensors of one element type whose shapes agree."""
    if one == other:
        return True
    if not is_tensor(one) or not is_tensor(other):
        return False
    return one.element_type == other.element_type and shapes_agree(one.get_shape(), other.get_shape())


def check_types(what: str, actual: Attribute, expected: Attribute) -> None:
    if not types_agree(actual, expected):
        raise VerifyException(f"{what} has type {actual}, expected {expected}")


def check_shape(what: str, actual: Shape, expected: Shape) -> None:
    if not shapes_agree(actual, expected):
        raise VerifyException(f"{what} has shape {_text(actual)}, expected {_text(expected)}")


def check_static(what: str, value: SSAValue) -> None:
    if DYNAMIC_INDEX in shape_of(value):
        raise VerifyException(f"{what} has type {value.type}, expected known extents")


def check_element(what: str, actual: Attribute, expected: Attribute) -> None:
    if actual != expected:
        raise VerifyException(f"{what} has elements of type {actual}, expected {expected}")


def check_count(what: str, actual: int, expected: int) -> None:
    if actual != expected:
        raise VerifyException(f"there are {actual} {what}, expected {expected}")


def check_dimensions(what: str, dimensions: Sequence[int], rank: int) -> None:
    """Distinct, and within the rank."""
    check_within(what, dimensions, rank)
    check_distinct(what, dimensions)


def check_within(what: str, dimensions: Sequence[int], rank: int) -> None:
    if any(not 0 <= dimension < rank for dimension in dimensions):
        raise VerifyException(f"{what} {list(dimensions)} are not all within the rank {rank}")


def check_distinct(what: str, dimensions: Sequence[int]) -> None:
    if len(set(dimensions)) != len(dimensions):
        raise VerifyException(f"{what} {list(dimensions)} name a dimension twice")


def check_ordered(what: str, dimensions: Sequence[int]) -> None:
    if list(dimensions) != sorted(dimensions):
        raise VerifyException(f"{what} {list(dimensions)} are not in order")


def check_sizes(what: str, sizes: Shape, extents: Shape) -> None:
    """None is negative or above its extent, as far as the extents are known."""
    for size, extent in zip(sizes, extents, strict=True):
        if size < 0 or (extent != DYNAMIC_INDEX and size > extent):
            raise VerifyException(f"{what} of {size} does not fit an extent of {extent}")


def _text(shape: Shape) -> str:
    return "[" + ", ".join("?" if extent == DYNAMIC_INDEX else str(extent) for extent in shape) + "]"


def check_takes(op: Operation, takes: Takes) -> None:
    """Element types that builtin does not have, quantized ones for instance, are let through."""
    element = element_of(op.operands[0])
    if not takes(element) and is_numeric(element):
        raise VerifyException(f"{op.name} is not defined for elements of type {element}")


def is_numeric(element: Attribute) -> bool:
    return isinstance(element, AnyFloat | IntegerType | ComplexType)


def bits_of(element: Attribute) -> int | None:
    """How many bits a number has, if it is known."""
    if is_complex_type(element):
        part = bits_of(element.element_type)
        return part and 2 * part
    return element.bitwidth if isinstance(element, AnyFloat | IntegerType) else None


def is_float(element: Attribute) -> bool:
    return isinstance(element, AnyFloat)


def is_float_or_complex(element: Attribute) -> bool:
    return isinstance(element, AnyFloat | ComplexType)


def is_integer(element: Attribute) -> bool:
    return isinstance(element, IntegerType) and element != i1


def is_integer_or_float(element: Attribute) -> bool:
    return is_integer(element) or is_float(element)


def is_integer_or_bool(element: Attribute) -> bool:
    return isinstance(element, IntegerType)


def is_signed(element: Attribute) -> bool:
    """A number that may be negative; integers are signed unless they say otherwise."""
    return element != i1 and not is_unsigned(element)


def is_number(element: Attribute) -> bool:
    return element != i1


def is_any(element: Attribute) -> bool:
    return True
