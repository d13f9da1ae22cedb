"""Elements of one type as elements of another: by value (`convert`) and by bits (`bitcast_convert`)."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ...dialects.elements import DType, bit_width, round_to
from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.shapes import BitcastConvertOp
from .arrays import F32, F64, Array, Kernel, dtype_at, kind_of, wide


def convert(values: Array, dtype: DType) -> Array:
    """A new array with the numbers nearest to `values` that `dtype` has.

    Integers wrap; a float becomes an integer by rounding towards zero, the nearest one when out of range, and 0 for
    NaN, as in XLA. What is not zero is true. The imaginary part is dropped where the result is real.
    """
    if values.dtype == dtype:
        return values.copy()
    source, target = kind_of(values.dtype), kind_of(dtype)
    known: Array = values.astype(wide(values.dtype))
    if target == "b":
        return known != 0
    if source == "c" and target != "c":
        known, source = np.real(known), "f"
    if source == "f" and target in "iu":
        return _whole(known, dtype)
    if target == "f" and dtype.itemsize < F32.itemsize and known.dtype != F32:
        return round_to(known.astype(F64), dtype)
    return known.astype(dtype)


def _whole(values: Array, dtype: DType) -> Array:
    bounds = ml_dtypes.iinfo(dtype)
    lowest, beyond = int(bounds.min), int(bounds.max) + 1
    whole = np.trunc(values.astype(F64))
    inside = (whole >= float(lowest)) & (whole < float(beyond))
    found = np.where(inside, whole, 0.0).astype(wide(dtype))
    found = np.where(whole < float(lowest), found.dtype.type(lowest), found)
    return np.where(whole >= float(beyond), found.dtype.type(beyond - 1), found).astype(dtype)


def bitcast_convert(op: BitcastConvertOp) -> Kernel:
    source, target, shape = dtype_at(op.operand), dtype_at(op.result), shape_of(op.result)
    narrow = any(bit_width(dtype) < 8 * dtype.itemsize for dtype in (source, target))

    def run(operand: Array) -> tuple[Array, ...]:
        raw = operand.copy().reshape(-1)
        bits = _regrouped(raw, target) if narrow else raw.view(target)
        return (bits.reshape(shape).copy(),)

    return run


def _regrouped(values: Array, dtype: DType) -> Array:
    """The significant bits of all elements in a row, the lowest first, cut into elements of `dtype`."""
    columns = np.unpackbits(values.view(np.uint8).reshape(-1, values.dtype.itemsize), axis=-1, bitorder="little")
    row = columns[:, : bit_width(values.dtype)].reshape(-1, bit_width(dtype))
    padded = np.pad(row, ((0, 0), (0, 8 * dtype.itemsize - bit_width(dtype))))
    return np.packbits(padded, axis=-1, bitorder="little").reshape(-1).view(dtype)
