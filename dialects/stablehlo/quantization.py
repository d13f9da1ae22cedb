"""Conversions between quantized numbers and floats."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .checks import Constraint, check_element, check_shape, element_of, is_float, shape_of, verify_constraints
from .formats import SameTypeOp
from .quantized_types import QuantizedType
from .tensors import tensors


def _quantized_type(subject: str, element: Attribute) -> QuantizedType:
    """Parse a quantized element type. Raises `VerifyException` for any other type."""
    type_ = QuantizedType.of(element)
    if type_ is None:
        raise VerifyException(f"{subject} has elements of type {element}, expected a quantized type")
    return type_


@irdl_op_definition
class UniformQuantizeOp(SameTypeOp):
    """Convert floats or quantized numbers to a quantized type."""

    name = "stablehlo.uniform_quantize"

    operand = operand_def(tensors("I1"))
    result = result_def(tensors())

    traits = traits_def(Pure())

    def verify_(self) -> None:
        verify_constraints(self, QUANTIZE_CONSTRAINTS)


@irdl_op_definition
class UniformDequantizeOp(SameTypeOp):
    """Convert quantized numbers to the floats that they represent."""

    name = "stablehlo.uniform_dequantize"

    operand = operand_def(tensors("I1"))
    result = result_def(tensors())

    traits = traits_def(Pure())

    def verify_(self) -> None:
        verify_constraints(self, DEQUANTIZE_CONSTRAINTS)


def _check_operand(op: UniformQuantizeOp) -> None:
    element = element_of(op.operand)
    if not is_float(element) and QuantizedType.of(element) is None:
        raise VerifyException(f"the operand has elements of type {element}, expected a float or quantized type")


def _check_expressed(op: UniformQuantizeOp) -> None:
    source = QuantizedType.of(element_of(op.operand))
    expected = element_of(op.operand) if source is None else source.expressed
    result = _quantized_type("the result", element_of(op.result))
    check_element("the expressed form of the result", result.expressed, expected)


QUANTIZE_CONSTRAINTS: tuple[Constraint[UniformQuantizeOp], ...] = (
    Constraint("I1", _check_operand),
    Constraint("C1", lambda op: check_shape("the result", shape_of(op.result), shape_of(op.operand))),
    Constraint("C2", _check_expressed),
)
DEQUANTIZE_CONSTRAINTS: tuple[Constraint[UniformDequantizeOp], ...] = (
    Constraint("I1", lambda op: _quantized_type("the operand", element_of(op.operand))),
    Constraint("C1", lambda op: check_shape("the result", shape_of(op.result), shape_of(op.operand))),
    Constraint(
        "C2",
        lambda op: check_element(
            "the result", element_of(op.result), _quantized_type("the operand", element_of(op.operand)).expressed
        ),
    ),
)

QUANTIZATION: list[type[Operation]] = [UniformQuantizeOp, UniformDequantizeOp]
