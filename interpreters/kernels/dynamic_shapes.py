"""Kernels of operations that have a shape, or another static parameter, as an operand.

The interpreter supports only static types, so the kernels check that such operands agree with the result types.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...dialects.stablehlo.convolution import DynamicConvOp
from ...dialects.stablehlo.dynamic_shapes import (
    DynamicBroadcastInDimOp,
    DynamicIotaOp,
    DynamicPadOp,
    DynamicReshapeOp,
    GetDimensionSizeOp,
    RealDynamicSliceOp,
    SetDimensionSizeOp,
)
from ...dialects.stablehlo.indexing import DynamicGatherOp
from .arrays import Array, Kernel, on_one, shape_at
from .indexing import gather_with
from .movement import broadcast_to, count_along, pad_array
from .windowed import convolve, spatial_windows


def _check_shape(shape: tuple[int, ...], stated: Array) -> None:
    """Raise `ValueError` if the shape operand (`stated`) differs from the shape of the result type."""
    extents = tuple(int(extent) for extent in stated)
    if extents != shape:
        raise ValueError(f"its shape operand is {list(extents)}, but its result has shape {list(shape)}")


def dynamic_reshape(op: DynamicReshapeOp) -> Kernel:
    """Make the kernel of `dynamic_reshape`, which returns a view if the operand is row-major, otherwise a copy."""
    shape = shape_at(op.result)

    def run(operand: Array, stated: Array) -> tuple[Array, ...]:
        _check_shape(shape, stated)
        return (operand.reshape(shape),)

    return run


def dynamic_broadcast_in_dim(op: DynamicBroadcastInDimOp) -> Kernel:
    """Make the kernel of `dynamic_broadcast_in_dim`, which returns a view that repeats elements with stride zero."""
    shape = shape_at(op.result)
    repeat = broadcast_to(shape_at(op.result), op.broadcast_dimensions.get_values())

    def run(operand: Array, stated: Array) -> tuple[Array, ...]:
        _check_shape(shape, stated)
        return (repeat(operand),)

    return run


def dynamic_iota(op: DynamicIotaOp) -> Kernel:
    shape = shape_at(op.result)
    count = count_along(op.result, op.iota_dimension.value.data)

    def run(stated: Array) -> tuple[Array, ...]:
        _check_shape(shape, stated)
        return (count(),)

    return run


def dynamic_pad(op: DynamicPadOp) -> Kernel:
    shape = shape_at(op.result)

    def run(operand: Array, value: Array, *amounts: Array) -> tuple[Array, ...]:
        result = pad_array(operand, value, *([int(amount) for amount in side] for side in amounts))
        if result.shape != shape:
            raise ValueError(
                f"the padded operand has shape {list(result.shape)}, but the result has shape {list(shape)}"
            )
        return (result,)

    return run


def real_dynamic_slice(op: RealDynamicSliceOp) -> Kernel:
    """Make the kernel of `real_dynamic_slice`. The kernel raises `ValueError` if the slice is out of bounds."""
    shape = shape_at(op.result)

    def run(operand: Array, *numbers: Array) -> tuple[Array, ...]:
        ranges = [tuple(int(part) for part in parts) for parts in zip(*numbers, strict=True)]
        for extent, (start, limit, stride) in zip(operand.shape, ranges, strict=True):
            if not 0 <= start <= limit <= extent or stride < 1:
                raise ValueError(f"{start}:{limit}:{stride} is not a valid slice of an extent of {extent}")
        result = operand[(*(slice(*part) for part in ranges), ...)].copy()
        if result.shape != shape:
            raise ValueError(f"the slice has shape {list(result.shape)}, but the result has shape {list(shape)}")
        return (result,)

    return run


def get_dimension_size(op: GetDimensionSizeOp) -> Kernel:
    size = shape_at(op.operand)[op.dimension.value.data]
    return on_one(lambda operand: np.asarray(size, np.int32))


def set_dimension_size(op: SetDimensionSizeOp) -> Kernel:
    """Make the kernel of `set_dimension_size`. The kernel returns the operand, and raises `ValueError` if the size
    differs from the static extent."""
    shape = shape_at(op.result)
    dimension = op.dimension.value.data

    def run(operand: Array, size: Array) -> tuple[Array, ...]:
        if int(size) != shape[dimension] or operand.shape != shape:
            raise ValueError(f"the size is {int(size)}, but the extent of the result is {shape[dimension]}")
        return (operand.copy(),)

    return run


def dynamic_gather(op: DynamicGatherOp) -> Kernel:
    gathered, shape = gather_with(op), shape_at(op.result)

    def run(operand: Array, indices: Array, sizes: Array) -> tuple[Array, ...]:
        result = gathered(operand, indices, [int(size) for size in sizes])
        if result.shape != shape:
            raise ValueError(f"the slices form shape {list(result.shape)}, but the result has shape {list(shape)}")
        return (result,)

    return run


def dynamic_conv(op: DynamicConvOp) -> Kernel:
    still = spatial_windows(op, None)
    shape = shape_at(op.result)

    def run(lhs: Array, rhs: Array, padding: Array) -> tuple[Array, ...]:
        pairs = [(int(low), int(high)) for low, high in padding]
        moves = [replace(move, low=low, high=high) for move, (low, high) in zip(still, pairs, strict=True)]
        result = convolve(op, moves)(lhs, rhs)
        if result.shape != shape:
            raise ValueError(f"the convolution has shape {list(result.shape)}, but the result has shape {list(shape)}")
        return (result,)

    return run
