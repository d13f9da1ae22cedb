"""Operands that hold a shape or other numbers for each dimension: one-dimensional tensors of integers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..dense import DenseAttr, to_numpy
from .checks import check_count, element_of, shape_of
from .creation import ConstantOp


def check_dimension_tensor(subject: str, value: SSAValue, count: int) -> None:
    """Check that a value is a one-dimensional tensor of `count` integers."""
    shape = shape_of(value)
    if len(shape) != 1 or not isinstance(element_of(value), IntegerType | IndexType):
        raise VerifyException(f"{subject} has type {value.type}, expected a tensor of integers with one dimension")
    if shape[0] != DYNAMIC_INDEX:
        check_count(f"elements of {subject}", shape[0], count)


def check_fixed_length(subject: str, value: SSAValue) -> None:
    """Check that the number of elements is known."""
    if DYNAMIC_INDEX in shape_of(value):
        raise VerifyException(f"{subject} has type {value.type}, expected a known number of elements")


def constant_integers(value: SSAValue) -> list[int] | None:
    """The elements of a constant; None if the value is not one."""
    owner = value.owner
    if not isinstance(owner, Operation) or not isinstance(owner, ConstantOp):
        return None
    if not isinstance(owner.value, DenseAttr):
        return None
    return [int(number) for number in to_numpy(owner.value).reshape(-1)]


def constants_of(values: Sequence[SSAValue]) -> list[list[int]] | None:
    """The elements of constants; None if one of the values is not a constant."""
    known = [constant_integers(value) for value in values]
    return [numbers for numbers in known if numbers is not None] if None not in known else None
