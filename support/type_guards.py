"""`isinstance` checks for xDSL's generic attributes that also narrow the type parameters for a type checker."""

from __future__ import annotations

from typing import TypeAlias

from typing_extensions import TypeIs
from xdsl.dialects.builtin import (
    AnyDenseElement,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    Signedness,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute

AnyTensor: TypeAlias = TensorType[Attribute]
AnyShaped: TypeAlias = TensorType[Attribute] | VectorType[Attribute] | MemRefType[Attribute]
AnyDense: TypeAlias = DenseIntOrFPElementsAttr[AnyDenseElement]


def is_tensor(attribute: Attribute) -> TypeIs[AnyTensor]:
    return isinstance(attribute, TensorType)


def is_shaped(attribute: Attribute) -> TypeIs[AnyShaped]:
    """Return whether the attribute is a tensor, vector or memref type."""
    return isinstance(attribute, TensorType | VectorType | MemRefType)


def is_standard_dense(attribute: Attribute) -> TypeIs[AnyDense]:
    """Return whether the attribute is xDSL's own dense constant, which stores every element."""
    return isinstance(attribute, DenseIntOrFPElementsAttr)


def is_integer_array(attribute: Attribute) -> TypeIs[DenseArrayBase[IntegerType]]:
    """Return whether the attribute is an integer array, `array<i64: …>`.

    Arrays of floats are also accepted, because no caller tests an operation that could have one.
    """
    return isinstance(attribute, DenseArrayBase)


def is_complex_type(attribute: Attribute) -> TypeIs[ComplexType]:
    return isinstance(attribute, ComplexType)


def is_integer_type(attribute: Attribute) -> TypeIs[IntegerType[int, Signedness]]:
    return isinstance(attribute, IntegerType)


def is_integer_attribute(attribute: Attribute) -> TypeIs[IntegerAttr[IntegerType | IndexType]]:
    return isinstance(attribute, IntegerAttr)


def is_unsigned(attribute: Attribute) -> bool:
    """Return whether the attribute is an unsigned integer type; a signless integer type is not unsigned."""
    return is_integer_type(attribute) and attribute.signedness.data == Signedness.UNSIGNED
