"""Conversions between floats and quantized numbers, whose arrays hold the stored integers."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.elements import dtype_of
from ...dialects.stablehlo.checks import element_of
from ...dialects.stablehlo.quantization import UniformDequantizeOp, UniformQuantizeOp
from ...dialects.stablehlo.quantized_types import QuantizedType
from .arrays import Array, Kernel, on_one, owned, shape_at, wide
from .conversion import convert


class _Scale:
    """The scales and zero points of a quantized value, as arrays that broadcast to its shape."""

    def __init__(self, type_: QuantizedType, value: SSAValue):
        self.type = type_
        self.expressed, self.storage = dtype_of(type_.expressed), dtype_of(type_.storage)
        self.working = wide(self.expressed)
        rank = len(shape_at(value))
        shape = [-1 if dimension == type_.dimension else 1 for dimension in range(rank)]
        self.scales = np.array(type_.scales, self.working).reshape(shape)
        self.zero_points = np.array(type_.zero_points, np.int64).reshape(shape)

    def real(self, stored: Array) -> Array:
        """The real numbers of stored integers."""
        return (stored.astype(np.int64) - self.zero_points).astype(self.working) * self.scales

    def nearest(self, real: Array) -> Array:
        """The stored integers nearest to real numbers; ties go to even ones, and what is out of range is clamped."""
        steps = np.rint(convert(real, self.working) / self.scales) + self.zero_points
        return owned(np.clip(steps, self.type.low, self.type.high), self.storage)


def _scale_of(value: SSAValue) -> _Scale | None:
    type_ = QuantizedType.of(element_of(value))
    return None if type_ is None else _Scale(type_, value)


def uniform_quantize(op: UniformQuantizeOp) -> Kernel:
    """Raises `ValueError` for a type that is quantized in another way."""
    source, target = _scale_of(op.operand), _scale_of(op.result)
    if target is None:
        raise ValueError(f"the type {op.result.type} is not executed")
    return on_one(lambda operand: target.nearest(operand if source is None else source.real(operand)))


def uniform_dequantize(op: UniformDequantizeOp) -> Kernel:
    """Raises `ValueError` for a type that is quantized in another way."""
    source = _scale_of(op.operand)
    if source is None:
        raise ValueError(f"the type {op.operand.type} is not executed")
    return on_one(lambda operand: owned(source.real(operand), source.expressed))
