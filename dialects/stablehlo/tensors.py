"""The tensor types that most operations accept: of numbers, and of numbers quantized per tensor."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType, UnregisteredAttr
from xdsl.ir import Attribute
from xdsl.irdl import BaseAttr, VerificationContext
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_tensor


def is_quantized_by_dimension(type_: Attribute) -> bool:
    """`tensor<4x!quant.uniform<i8:f32:0, {1.0:0, 2.0:0}>>`: a scale for each index along a dimension."""
    # By name: this is called for every operand, and `isinstance` is slow for `UnregisteredAttr`, an abstract class.
    if not is_tensor(type_) or type_.element_type.name != UnregisteredAttr.name:
        return False
    element = type_.element_type
    assert isinstance(element, UnregisteredAttr), "no other attribute has that name"
    return element.attr_name.data == "quant.uniform" and "{" in element.value.data


def check_not_quantized_by_dimension(type_: Attribute) -> None:
    if is_quantized_by_dimension(type_):
        raise VerifyException(f"{type_} is quantized along a dimension, which this operation does not take")


class NumbersConstraint(BaseAttr[TensorType]):
    """A tensor that is not quantized along a dimension."""

    name: ClassVar[str] = "numbers"

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        super().verify(attr, constraint_context)
        check_not_quantized_by_dimension(attr)


NUMBERS = NumbersConstraint(TensorType)
