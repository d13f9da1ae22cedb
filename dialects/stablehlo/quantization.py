"""Quantized numbers, `!quant.uniform<i8:f32, 0.5:3>`, which xDSL keeps as text, and conversions between them and
floats.

!quant.uniform<i8:f32, 0.5:3>                       storage type, expressed type, scale, zero point
!quant.uniform<i8<-100:100>:f32:1, {0.1:1, 0.2:2}>  the storage is limited; a scale for each index along dimension 1
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    TensorType,
    UnregisteredAttr,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .checks import Constraint, check_element, check_shape, element_of, is_float, shape_of, verify_constraints
from .formats import SameTypeOp

_QUANTIZED = re.compile(
    r"\s*(?P<sign>[iu])(?P<bits>\d+)\s*(?:<\s*(?P<low>-?\d+)\s*:\s*(?P<high>-?\d+)\s*>)?\s*"
    r":\s*(?P<expressed>\w+)\s*(?::\s*(?P<dimension>\d+)\s*)?,\s*(?P<scales>.*?)\s*",
    re.DOTALL,
)
_FLOATS: dict[str, AnyFloat] = {
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
    "f32": Float32Type(),
    "f64": Float64Type(),
}
NAME = "quant.uniform"


@dataclass(frozen=True)
class QuantizedType:
    """The real number of a stored integer `s` is `(s - zero_point) * scale`.

    Attributes:
        storage: The type of the stored integers.
        low, high: The smallest and the largest stored integer.
        expressed: The type of the real numbers.
        scales, zero_points: One for each index along `dimension`, or one for all elements.
        dimension: The dimension along which the scale differs; None if it does not.
    """

    storage: IntegerType
    low: int
    high: int
    expressed: AnyFloat
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    dimension: int | None

    @classmethod
    def of(cls, element: Attribute) -> QuantizedType | None:
        """The parts of an element type; None if it is not a quantized one of this form."""
        if not isinstance(element, UnregisteredAttr) or element.attr_name.data != NAME:
            return None
        match = _QUANTIZED.fullmatch(element.value.data)
        if match is None or match["expressed"] not in _FLOATS:
            return None
        bits, is_unsigned = int(match["bits"]), match["sign"] == "u"
        pairs = _pairs(match["scales"])
        if pairs is None:
            return None
        low, high = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return cls(
            storage=IntegerType(bits, Signedness.UNSIGNED if is_unsigned else Signedness.SIGNLESS),
            low=low if match["low"] is None else int(match["low"]),
            high=high if match["high"] is None else int(match["high"]),
            expressed=_FLOATS[match["expressed"]],
            scales=tuple(scale for scale, _ in pairs),
            zero_points=tuple(zero for _, zero in pairs),
            dimension=None if match["dimension"] is None else int(match["dimension"]),
        )


def _pairs(text: str) -> list[tuple[float, int]] | None:
    """`0.5:3`, or `{0.5:3, 0.25}`: scales with their zero points, which are 0 if they are not given."""
    entries = text.removeprefix("{").removesuffix("}").split(",")
    pairs = list[tuple[float, int]]()
    for entry in entries:
        scale, _, zero = entry.partition(":")
        try:
            pairs.append((float(scale), int(zero or 0)))
        except ValueError:
            return None
    return pairs


def _quantized(subject: str, element: Attribute) -> QuantizedType:
    """The parts of a quantized element type. Raises `VerifyException` for any other type."""
    type_ = QuantizedType.of(element)
    if type_ is None:
        raise VerifyException(f"{subject} has elements of type {element}, expected quantized ones")
    return type_


@irdl_op_definition
class UniformQuantizeOp(SameTypeOp):
    """Floats, or quantized numbers, in a quantized type."""

    name = "stablehlo.uniform_quantize"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        verify_constraints(self, OF_QUANTIZE)


@irdl_op_definition
class UniformDequantizeOp(SameTypeOp):
    """The floats that quantized numbers stand for."""

    name = "stablehlo.uniform_dequantize"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        verify_constraints(self, OF_DEQUANTIZE)


def _check_operand(op: UniformQuantizeOp) -> None:
    element = element_of(op.operand)
    if not is_float(element) and QuantizedType.of(element) is None:
        raise VerifyException(f"the operand has elements of type {element}, expected floats or quantized ones")


def _check_expressed(op: UniformQuantizeOp) -> None:
    source = QuantizedType.of(element_of(op.operand))
    expected = element_of(op.operand) if source is None else source.expressed
    check_element("the expressed result", _quantized("the result", element_of(op.result)).expressed, expected)


OF_QUANTIZE: tuple[Constraint[UniformQuantizeOp], ...] = (
    Constraint("I1", _check_operand),
    Constraint("C1", lambda op: check_shape("the result", shape_of(op.result), shape_of(op.operand))),
    Constraint("C2", _check_expressed),
)
OF_DEQUANTIZE: tuple[Constraint[UniformDequantizeOp], ...] = (
    Constraint("I1", lambda op: _quantized("the operand", element_of(op.operand))),
    Constraint("C1", lambda op: check_shape("the result", shape_of(op.result), shape_of(op.operand))),
    Constraint(
        "C2",
        lambda op: check_element(
            "the result", element_of(op.result), _quantized("the operand", element_of(op.operand)).expressed
        ),
    ),
)

QUANTIZATION: list[type[Operation]] = [UniformQuantizeOp, UniformDequantizeOp]
