"""Elementwise operations on one tensor, whose result has the type of the operand."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import Pure

from .accuracy import ResultAccuracyAttr
from .checks import (
    ElementPredicate,
    check_takes,
    check_types,
    is_any,
    is_float,
    is_float_or_complex,
    is_integer,
    is_integer_or_bool,
    is_number,
    is_signed,
)
from .formats import SameTypeOp
from .tensors import numbers


class UnaryOp(SameTypeOp):
    """Base class of operations that apply a function to each element of a tensor."""

    TAKES: ClassVar[ElementPredicate] = is_any
    """A predicate that accepts the element types for which the operation is defined."""

    operand = operand_def(numbers("I1"))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue, result_type: Attribute | None = None):
        super().__init__(operands=[operand], result_types=[result_type or operand.type])

    def verify_(self) -> None:
        check_types("C1: the result", self.result.type, self.operand.type)
        check_takes(self, type(self).TAKES)


class AccurateUnaryOp(UnaryOp):
    """Base class of unary operations with an optional `result_accuracy`."""

    result_accuracy = opt_prop_def(ResultAccuracyAttr)


@irdl_op_definition
class CbrtOp(AccurateUnaryOp):
    name = "stablehlo.cbrt"
    TAKES = is_float_or_complex


@irdl_op_definition
class CosineOp(AccurateUnaryOp):
    name = "stablehlo.cosine"
    TAKES = is_float_or_complex


@irdl_op_definition
class ExponentialOp(AccurateUnaryOp):
    name = "stablehlo.exponential"
    TAKES = is_float_or_complex


@irdl_op_definition
class ExponentialMinusOneOp(AccurateUnaryOp):
    name = "stablehlo.exponential_minus_one"
    TAKES = is_float_or_complex


@irdl_op_definition
class LogOp(AccurateUnaryOp):
    name = "stablehlo.log"
    TAKES = is_float_or_complex


@irdl_op_definition
class LogPlusOneOp(AccurateUnaryOp):
    name = "stablehlo.log_plus_one"
    TAKES = is_float_or_complex


@irdl_op_definition
class LogisticOp(AccurateUnaryOp):
    name = "stablehlo.logistic"
    TAKES = is_float_or_complex


@irdl_op_definition
class RsqrtOp(AccurateUnaryOp):
    name = "stablehlo.rsqrt"
    TAKES = is_float_or_complex


@irdl_op_definition
class SineOp(AccurateUnaryOp):
    name = "stablehlo.sine"
    TAKES = is_float_or_complex


@irdl_op_definition
class SqrtOp(AccurateUnaryOp):
    name = "stablehlo.sqrt"
    TAKES = is_float_or_complex


@irdl_op_definition
class TanOp(AccurateUnaryOp):
    name = "stablehlo.tan"
    TAKES = is_float_or_complex


@irdl_op_definition
class TanhOp(AccurateUnaryOp):
    name = "stablehlo.tanh"
    TAKES = is_float_or_complex


@irdl_op_definition
class CeilOp(UnaryOp):
    name = "stablehlo.ceil"
    TAKES = is_float


@irdl_op_definition
class CountLeadingZerosOp(UnaryOp):
    name = "stablehlo.count_leading_zeros"
    TAKES = is_integer


@irdl_op_definition
class FloorOp(UnaryOp):
    name = "stablehlo.floor"
    TAKES = is_float


@irdl_op_definition
class NegateOp(UnaryOp):
    name = "stablehlo.negate"
    TAKES = is_number


@irdl_op_definition
class NotOp(UnaryOp):
    name = "stablehlo.not"
    TAKES = is_integer_or_bool


@irdl_op_definition
class PopcntOp(UnaryOp):
    name = "stablehlo.popcnt"
    TAKES = is_integer


@irdl_op_definition
class RoundNearestAfzOp(UnaryOp):
    name = "stablehlo.round_nearest_afz"
    TAKES = is_float


@irdl_op_definition
class RoundNearestEvenOp(UnaryOp):
    name = "stablehlo.round_nearest_even"
    TAKES = is_float


@irdl_op_definition
class SignOp(UnaryOp):
    name = "stablehlo.sign"
    TAKES = is_signed


UNARY: list[type[Operation]] = [
    CbrtOp,
    CosineOp,
    ExponentialOp,
    ExponentialMinusOneOp,
    LogOp,
    LogPlusOneOp,
    LogisticOp,
    RsqrtOp,
    SineOp,
    SqrtOp,
    TanOp,
    TanhOp,
    CeilOp,
    CountLeadingZerosOp,
    FloorOp,
    NegateOp,
    NotOp,
    PopcntOp,
    RoundNearestAfzOp,
    RoundNearestEvenOp,
    SignOp,
]
