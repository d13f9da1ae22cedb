"""Conversions between element types, which preserve values (`convert`) or bits (`bitcast_convert`) or convert to and
from quantized types.

An array represents a quantized value by its stored integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.test_value import create_ssa_value

from ...dialects.constants.elements import DType, bit_width, dtype_of, round_to
from ...dialects.stablehlo.checks import element_of, shape_of
from ...dialects.stablehlo.quantization import UniformDequantizeOp, UniformQuantizeOp
from ...dialects.stablehlo.quantized_types import QuantizedType
from ...dialects.stablehlo.representation import ReducePrecisionOp
from ...dialects.stablehlo.shapes import BitcastConvertOp
from .arrays import F32, F64, Array, Kernel, as_owned, dtype_at, kind_of, on_one, shape_at, wide

_FINFO: Any = ml_dtypes.finfo


def convert(values: Array, dtype: DType) -> Array:
    """Return a new array with the elements of `values` converted to `dtype`, as in XLA.

    Numbers become the nearest number of the type, except that integers wrap around. Floats are rounded towards zero to
    become integers; values that are out of range become the nearest integer, and NaN becomes 0. A nonzero value becomes
    true. The conversion to a real type drops the imaginary part.
    """
    if values.dtype == dtype:
        return values.copy()
    source, target = kind_of(values.dtype), kind_of(dtype)
    widened: Array = values.astype(wide(values.dtype))
    if source == "c" and target != "c":
        widened, source = np.real(widened), "f"
    if target == "b":
        return widened != 0
    if source == "f" and target in "iu":
        return _whole(widened, dtype)
    if target == "f" and dtype.itemsize < F32.itemsize and widened.dtype != F32:
        return round_to(widened.astype(F64), dtype)
    return widened.astype(dtype)


def _whole(values: Array, dtype: DType) -> Array:
    bounds = ml_dtypes.iinfo(dtype)
    lowest, beyond = int(bounds.min), int(bounds.max) + 1
    whole = np.trunc(values.astype(F64))
    inside = (whole >= float(lowest)) & (whole < float(beyond))
    clamped = np.where(inside, whole, 0.0).astype(wide(dtype))
    clamped = np.where(whole < float(lowest), clamped.dtype.type(lowest), clamped)
    return np.where(whole >= float(beyond), clamped.dtype.type(beyond - 1), clamped).astype(dtype)


def reduce_precision(op: ReducePrecisionOp) -> Kernel:
    """Make the kernel of `stablehlo.reduce_precision`, which rounds to the nearest number with fewer bits, ties to
    even.

    Numbers that are too large become infinite, and subnormal numbers become 0. NaN is unchanged, except that it becomes
    infinity if the format has no mantissa, as in StableHLO's reference interpreter. (In XLA, it remains NaN.)
    """
    dtype = dtype_at(op.operand)
    if kind_of(dtype) != "f":
        raise ValueError(f"it is defined only for floats, not for elements of type {dtype}")
    info: Any = _FINFO(dtype)
    mantissa = int(info.nmant)
    exponent = bit_width(dtype) - 1 - int(info.nmant)
    dropped = max(0, mantissa - op.mantissa_bits.value.data)
    kept_exponent = min(exponent, op.exponent_bits.value.data)
    bias, kept_bias = (1 << (exponent - 1)) - 1, (1 << (kept_exponent - 1)) - 1
    sign, infinite = 1 << (bit_width(dtype) - 1), ((1 << exponent) - 1) << mantissa
    keeps_nan = op.mantissa_bits.value.data > 0

    def run(operand: Array) -> Array:
        raw_bits = operand.copy().view(f"u{dtype.itemsize}")
        bits, kind = raw_bits, raw_bits.dtype.type
        if dropped:
            half = kind((1 << (dropped - 1)) - 1) + (bits >> kind(dropped) & kind(1))
            bits = bits + half & ~kind((1 << dropped) - 1)
        if kept_exponent < exponent:
            size = bits >> kind(mantissa) & kind((1 << exponent) - 1)
            bits = np.where(size > bias + kept_bias, bits & kind(sign) | kind(infinite), bits)
            bits = np.where(size <= bias - kept_bias, bits & kind(sign), bits)
        nan = raw_bits if keeps_nan else raw_bits & kind(sign) | kind(infinite)
        return as_owned(np.where(operand != operand, nan, bits).view(dtype), dtype)

    return on_one(run)


def bitcast_convert(op: BitcastConvertOp) -> Kernel:
    source = _stored_dtype(op.operand)
    target = _stored_dtype(op.result)
    shape = shape_of(op.result)
    narrow = any(bit_width(dtype) < 8 * dtype.itemsize for dtype in (source, target))

    def run(operand: Array) -> tuple[Array, ...]:
        raw = operand.copy().reshape(-1)
        bits = _regroup_bits(raw, target) if narrow else raw.view(target)
        return (bits.reshape(shape).copy(),)

    return run


def _regroup_bits(values: Array, dtype: DType) -> Array:
    """Concatenate the significant bits of all elements, lowest bit first, and split the bits into elements of type
    `dtype`."""
    columns = np.unpackbits(values.view(np.uint8).reshape(-1, values.dtype.itemsize), axis=-1, bitorder="little")
    row = columns[:, : bit_width(values.dtype)].reshape(-1, bit_width(dtype))
    padded = np.pad(row, ((0, 0), (0, 8 * dtype.itemsize - bit_width(dtype))))
    return np.packbits(padded, axis=-1, bitorder="little").reshape(-1).view(dtype)


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
        """Return the real numbers that stored integers represent."""
        return (stored.astype(np.int64) - self.zero_points).astype(self.working) * self.scales

    def nearest(self, real: Array) -> Array:
        """Return the stored integers nearest to real numbers. Ties are rounded to even, and numbers that are out of
        range are clamped."""
        steps = np.rint(convert(real, self.working) / self.scales) + self.zero_points
        return as_owned(np.clip(steps, self.type.low, self.type.high), self.storage)


def _scale_of(value: SSAValue) -> _Scale | None:
    type_ = QuantizedType.of(element_of(value))
    return None if type_ is None else _Scale(type_, value)


def _stored_dtype(value: SSAValue) -> DType:
    """Return the numpy element type of a value. For a quantized value, this is the type of its stored integers."""
    scale = _scale_of(value)
    return dtype_at(value) if scale is None else scale.storage


def on_real_numbers(make: Callable[[Any], Kernel]) -> Callable[[Any], Kernel]:
    """Return a maker of kernels that also accept quantized values, like `dequantize_op_quantize` in the specification.

    The kernels compute with real numbers of the expressed type and quantize the results.

    `make`: makes the kernel for values that are not quantized.
    """

    def make_for_real_numbers(op: Operation) -> Kernel:
        operands, results = ([_scale_of(value) for value in values] for values in (op.operands, op.results))
        if not any((*operands, *results)):
            return make(op)
        compute = make(_on_expressed_types(op))

        def run(*arrays: Array) -> tuple[Array, ...]:
            reals = [
                array if scale is None else as_owned(scale.real(array), scale.expressed)
                for scale, array in zip(operands, arrays, strict=True)
            ]
            computed = zip(results, compute(*reals), strict=True)
            return tuple(array if scale is None else scale.nearest(array) for scale, array in computed)

        return run

    return make_for_real_numbers


def _on_expressed_types(op: Operation) -> Operation:
    """Return a copy of the operation on values of the expressed types. The copy is in no block."""
    operands = [create_ssa_value(_real_type(value)) for value in op.operands]
    return type(op).create(
        operands=operands,
        result_types=[_real_type(value) for value in op.results],
        properties=op.properties,
        attributes=op.attributes,
    )


def _real_type(value: SSAValue) -> Attribute:
    type_ = QuantizedType.of(element_of(value))
    return value.type if type_ is None else TensorType(type_.expressed, shape_at(value))


def uniform_quantize(op: UniformQuantizeOp) -> Kernel:
    """Make the kernel of `stablehlo.uniform_quantize`. Raises `ValueError` if the result type is not a supported
    quantized type."""
    source, target = _scale_of(op.operand), _scale_of(op.result)
    if target is None:
        raise ValueError(f"the interpreter does not support the quantized type {op.result.type}")
    return on_one(lambda operand: target.nearest(operand if source is None else source.real(operand)))


def uniform_dequantize(op: UniformDequantizeOp) -> Kernel:
    """Make the kernel of `stablehlo.uniform_dequantize`. Raises `ValueError` if the operand type is not a supported
    quantized type."""
    source = _scale_of(op.operand)
    if source is None:
        raise ValueError(f"the interpreter does not support the quantized type {op.operand.type}")
    return on_one(lambda operand: as_owned(source.real(operand), source.expressed))
