"""Elementwise operations on two tensors of the same type."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Commutative, Pure
from xdsl.utils.exceptions import VerifyException

from .checks import (
    ElementPredicate,
    check_element,
    check_shape,
    check_takes,
    check_types,
    element_of,
    is_any,
    is_float_or_complex,
    is_integer,
    is_integer_or_bool,
    is_number,
    shape_of,
)
from .formats import SameTypeOp
from .quantized_types import QuantizedType, check_baseline, is_quantized
from .tensors import numbers, tensors


class BinaryOp(SameTypeOp):
    """Combine each pair of elements of two tensors of the same type."""

    ARITY: ClassVar[int] = 2
    TAKES: ClassVar[ElementPredicate] = is_any

    lhs = operand_def(numbers("I1"))
    rhs = operand_def(numbers("I2"))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, result_type: Attribute | None = None):
        super().__init__(operands=[lhs, rhs], result_types=[result_type or lhs.type])

    def verify_(self) -> None:
        for subject, value in (("C1: the right operand", self.rhs), ("C1: the result", self.result)):
            if value.type != self.lhs.type and not is_quantized(value, self.lhs):
                check_types(subject, value.type, self.lhs.type)
            elif value.type != self.lhs.type:
                check_shape(subject, shape_of(value), shape_of(self.lhs))
                self.check_quantized(subject, value)
        check_takes(self, type(self).TAKES)

    def check_quantized(self, subject: str, value: SSAValue) -> None:
        """Check that a value has the element type of the left operand; scales and zero points may differ."""
        check_baseline(subject, element_of(value), element_of(self.lhs))


class CommutativeOp(BinaryOp):
    """A commutative operation. The short form of `stablehlo.reduce` may name it in place of a region."""

    traits = traits_def(Commutative())


@irdl_op_definition
class AddOp(CommutativeOp):
    name = "stablehlo.add"

    lhs = operand_def(tensors("I1"))
    rhs = operand_def(tensors("I2"))

    def verify_(self) -> None:
        super().verify_()
        values = (self.lhs, self.rhs, self.result)
        quantized = [QuantizedType.of(element_of(value)) for value in values]
        if None in quantized:
            return
        lhs, rhs, result = (type_.dimension for type_ in quantized if type_ is not None)
        if (lhs is None and rhs is None) != (result is None):
            raise VerifyException(
                f"C5: the quantization dimensions of the operands are {lhs} and {rhs}, and the quantization dimension "
                f"of the result is {result}; the result must have one if and only if an operand has one"
            )
        for label, subject, dimension in (("C6", "left", lhs), ("C7", "right", rhs)):
            if dimension not in (None, result):
                raise VerifyException(
                    f"{label}: the quantization dimension of the {subject} operand ({dimension}) must match "
                    f"the quantization dimension of the result ({result})"
                )

    def check_quantized(self, subject: str, value: SSAValue) -> None:
        first, second = QuantizedType.of(element_of(self.lhs)), QuantizedType.of(element_of(value))
        role = subject.removeprefix("C1: ")
        if first is None or second is None:
            raise VerifyException(
                f"C2: {role} has type {value.type}, and the left operand has type {self.lhs.type}, but either both or "
                "neither must be quantized"
            )
        check_element(f"C3: the storage form of {role}", second.storage, first.storage)
        check_element(f"C4: the expressed form of {role}", second.expressed, first.expressed)


@irdl_op_definition
class AndOp(CommutativeOp):
    name = "stablehlo.and"
    TAKES = is_integer_or_bool


@irdl_op_definition
class Atan2Op(BinaryOp):
    name = "stablehlo.atan2"
    TAKES = is_float_or_complex


@irdl_op_definition
class DivideOp(BinaryOp):
    name = "stablehlo.divide"
    TAKES = is_number


@irdl_op_definition
class MaximumOp(CommutativeOp):
    name = "stablehlo.maximum"


@irdl_op_definition
class MinimumOp(CommutativeOp):
    name = "stablehlo.minimum"


@irdl_op_definition
class MultiplyOp(CommutativeOp):
    name = "stablehlo.multiply"


@irdl_op_definition
class OrOp(CommutativeOp):
    name = "stablehlo.or"
    TAKES = is_integer_or_bool


@irdl_op_definition
class PowerOp(BinaryOp):
    name = "stablehlo.power"
    TAKES = is_number


@irdl_op_definition
class RemainderOp(BinaryOp):
    name = "stablehlo.remainder"
    TAKES = is_number


@irdl_op_definition
class ShiftLeftOp(BinaryOp):
    name = "stablehlo.shift_left"
    TAKES = is_integer


@irdl_op_definition
class ShiftRightArithmeticOp(BinaryOp):
    name = "stablehlo.shift_right_arithmetic"
    TAKES = is_integer


@irdl_op_definition
class ShiftRightLogicalOp(BinaryOp):
    name = "stablehlo.shift_right_logical"
    TAKES = is_integer


@irdl_op_definition
class SubtractOp(BinaryOp):
    name = "stablehlo.subtract"
    TAKES = is_number


@irdl_op_definition
class XorOp(CommutativeOp):
    name = "stablehlo.xor"
    TAKES = is_integer_or_bool


BINARY: list[type[Operation]] = [
    AddOp,
    AndOp,
    Atan2Op,
    DivideOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    OrOp,
    PowerOp,
    RemainderOp,
    ShiftLeftOp,
    ShiftRightArithmeticOp,
    ShiftRightLogicalOp,
    SubtractOp,
    XorOp,
]

COMMUTATIVE: dict[str, type[CommutativeOp]] = {op.name: op for op in BINARY if issubclass(op, CommutativeOp)}
"""The operations that the short form of `stablehlo.reduce` may name, by name."""
