"""Constraints for the tensor types that most operations accept: tensors of (possibly quantized) numbers.

Errors begin with the label of the input in StableHLO's specification: `I1: … is quantized along a dimension`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import BaseAttr, VerificationContext
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_tensor
from .quantized_types import QuantizedType


def is_quantized_by_dimension(type_: Attribute) -> bool:
    """Return whether the type has a scale for each index along a dimension.

    An example is `tensor<2x!quant.uniform<i8:f32:0, {1.0:0, 2.0:0}>>`.
    """
    quantized = QuantizedType.of(type_.element_type) if is_tensor(type_) else None
    return quantized is not None and quantized.dimension is not None


def check_not_quantized_by_dimension(type_: Attribute, label: str = "") -> None:
    if is_quantized_by_dimension(type_):
        start = f"{label}: " if label else ""
        raise VerifyException(
            f"{start}{type_} is quantized along a dimension, but this operation does not support such types"
        )


def check_quantized(type_: Attribute) -> None:
    """Check that the element type of a tensor, if it is quantized, is valid and consistent with the shape."""
    if is_tensor(type_) and (quantized := QuantizedType.of(type_.element_type)) is not None:
        quantized.check()
        quantized.check_shape(type_.get_shape())


@dataclass(frozen=True)
class TensorConstraint(BaseAttr[TensorType]):
    """Accepts tensors. Tensors that are quantized along a dimension are accepted only if `by_dimension` is set."""

    name: ClassVar[str] = "numbers"

    label: str = ""
    by_dimension: bool = False

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        try:
            super().verify(attr, constraint_context)
            check_quantized(attr)
            if not self.by_dimension:
                check_not_quantized_by_dimension(attr)
        except VerifyException as error:
            if not self.label:
                raise
            raise VerifyException(f"{self.label}: {error}") from None


def numbers(label: str = "") -> TensorConstraint:
    """Return the constraint for tensors that are not quantized along a dimension."""
    return TensorConstraint(TensorType, label)


def tensors(label: str = "") -> TensorConstraint:
    """Return the constraint for tensors of any element type."""
    return TensorConstraint(TensorType, label, by_dimension=True)


@dataclass(frozen=True)
class ScalarConstraint(BaseAttr[TensorType]):
    """Accepts scalars (tensors without dimensions) of one element type."""

    name: ClassVar[str] = "scalar"

    label: str
    element: Attribute

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        if not is_tensor(attr) or attr.element_type != self.element or attr.get_shape():
            raise VerifyException(f"{self.label}: {attr} is not a tensor<{self.element}>")


def scalar(label: str, element: Attribute) -> ScalarConstraint:
    """Return the constraint for scalars of the given element type."""
    return ScalarConstraint(TensorType, label, element)


NUMBERS = numbers()
