"""Checks shared by verifiers, and constraints with their labels in StableHLO's specification.

Each check raises `VerifyException` with the actual and the expected value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, ComplexType, IntegerType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_complex_type, is_tensor, is_unsigned
from .extent_bounds import is_within_bounds
from .quantized_types import same_element

OpT = TypeVar("OpT", bound=Operation)
OpT_contra = TypeVar("OpT_contra", bound=Operation, contravariant=True)


@dataclass(frozen=True)
class Constraint(Generic[OpT_contra]):
    """A constraint of the specification and its label.

    Attributes:
        label: The label, such as `C7`, with which the error begins.
        check: Raises `VerifyException` for an operation that violates the constraint. The function may assume that the
            operation satisfies all constraints that are listed before this one.
    """

    label: str
    check: Callable[[OpT_contra], object]


def verify_constraints(op: OpT, constraints: Sequence[Constraint[OpT]]) -> None:
    """Raise `VerifyException` with the label of the first violated constraint: `C7: offset_dims [1, 0] …`"""
    for constraint in constraints:
        try:
            constraint.check(op)
        except VerifyException as error:
            # With `from error`, a report of the exception's cause would lack the label.
            raise VerifyException(f"{constraint.label}: {error}") from None


Shape: TypeAlias = Sequence[int]
ElementPredicate: TypeAlias = Callable[[Attribute], bool]
"""A predicate that accepts the element types for which an operation is defined."""


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Return the shape of a value that must be a tensor, according to the definition of its operation."""
    assert is_tensor(value.type), "the definition of the operation requires a tensor"
    return value.type.get_shape()


def element_of(value: SSAValue) -> Attribute:
    """Return the element type of a value that must be a tensor, according to the definition of its operation."""
    assert is_tensor(value.type), "the definition of the operation requires a tensor"
    return value.type.element_type


def shapes_agree(first: Shape, second: Shape) -> bool:
    """Return whether the shapes have the same rank and the same extent in each dimension that is static in both
    shapes."""
    if len(first) != len(second):
        return False
    return all(a == b or DYNAMIC_INDEX in (a, b) for a, b in zip(first, second, strict=True))


def types_agree(first: Attribute, second: Attribute) -> bool:
    """Return whether the types are equal, or tensors of one element type whose shapes and bounds agree."""
    if first == second:
        return True
    if not is_tensor(first) or not is_tensor(second):
        return False
    if not same_element(first.element_type, second.element_type):
        return False
    return shapes_agree(first.get_shape(), second.get_shape()) and is_within_bounds(first, second)


def check_types(subject: str, actual: Attribute, expected: Attribute) -> None:
    if not types_agree(actual, expected):
        raise VerifyException(f"{subject} has type {actual}, expected {expected}")


def check_shape(subject: str, actual: Shape, expected: Shape) -> None:
    if not shapes_agree(actual, expected):
        raise VerifyException(f"{subject} has shape {_text(actual)}, expected {_text(expected)}")


def check_static(subject: str, value: SSAValue) -> None:
    if DYNAMIC_INDEX in shape_of(value):
        raise VerifyException(f"{subject} has type {value.type}, expected a static shape")


def check_element(subject: str, actual: Attribute, expected: Attribute) -> None:
    if not same_element(actual, expected):
        raise VerifyException(f"{subject} has elements of type {actual}, expected {expected}")


def check_count(subject: str, actual: int, expected: int) -> None:
    if actual != expected:
        raise VerifyException(f"there are {actual} {subject}, expected {expected}")


def check_dimensions(subject: str, dimensions: Sequence[int], rank: int) -> None:
    """Check that the dimensions are distinct and less than the rank."""
    check_within(subject, dimensions, rank)
    check_distinct(subject, dimensions)


def check_within(subject: str, dimensions: Sequence[int], rank: int) -> None:
    if any(not 0 <= dimension < rank for dimension in dimensions):
        raise VerifyException(f"{subject} {list(dimensions)} must be non-negative and less than rank {rank}")


def check_distinct(subject: str, dimensions: Sequence[int]) -> None:
    if len(set(dimensions)) != len(dimensions):
        raise VerifyException(f"{subject} {list(dimensions)} must be distinct")


def check_ordered(subject: str, dimensions: Sequence[int]) -> None:
    if list(dimensions) != sorted(dimensions):
        raise VerifyException(f"{subject} {list(dimensions)} must be in ascending order")


def check_sizes(subject: str, sizes: Shape, extents: Shape) -> None:
    """Check that each size is at least zero, and at most its extent if the extent is static."""
    for size, extent in zip(sizes, extents, strict=True):
        if size < 0:
            raise VerifyException(f"{subject} has size {size}, but sizes must not be negative")
        if extent != DYNAMIC_INDEX and size > extent:
            raise VerifyException(f"{subject} has size {size}, more than the extent {extent}")


def _text(shape: Shape) -> str:
    return "[" + ", ".join("?" if extent == DYNAMIC_INDEX else str(extent) for extent in shape) + "]"


def check_takes(op: Operation, takes: ElementPredicate) -> None:
    """Check that the operation is defined for the element type of its first operand.

    Types outside the builtin dialect, such as quantized types, are accepted.
    """
    element = element_of(op.operands[0])
    if not takes(element) and is_numeric(element):
        raise VerifyException(f"I1: {op.name} is not defined for elements of type {element}")


def is_numeric(element: Attribute) -> bool:
    return isinstance(element, AnyFloat | IntegerType | ComplexType)


def bits_of(element: Attribute) -> int | None:
    """Return the number of bits of an element type; None if it is unknown."""
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
    """Return whether numbers of the type may be negative. Signless integers are treated as signed."""
    return element != i1 and not is_unsigned(element)


def is_number(element: Attribute) -> bool:
    return element != i1


def is_any(element: Attribute) -> bool:
    return True
