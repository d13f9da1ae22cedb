"""Operations with a shape that an operand holds. The types have to be static, so the operand only confirms them."""

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
from .movement import broadcast_to, count_along, padded
from .windowed import convolve, moves_of


def _check_shape(shape: tuple[int, ...], stated: Array) -> None:
    """Check the shape that an operand holds. Raises `ValueError` if it is not that of the type."""
    extents = tuple(int(extent) for extent in stated)
    if extents != shape:
        raise ValueError(f"the shape that it is given is {list(extents)}, that of its result is {list(shape)}")


def dynamic_reshape(op: DynamicReshapeOp) -> Kernel:
    """Return a view if the operand is row-major."""
    shape = shape_at(op.result)

    def run(operand: Array, stated: Array) -> tuple[Array, ...]:
        _check_shape(shape, stated)
        return (operand.reshape(shape),)

    return run


def dynamic_broadcast_in_dim(op: DynamicBroadcastInDimOp) -> Kernel:
    """Return a view that repeats elements with stride zero."""
    shape, repeat = shape_at(op.result), broadcast_to(shape_at(op.result), op.broadcast_dimensions.get_values())

    def run(operand: Array, stated: Array) -> tuple[Array, ...]:
        _check_shape(shape, stated)
        return (repeat(operand),)

    return run


def dynamic_iota(op: DynamicIotaOp) -> Kernel:
    shape, count = shape_at(op.result), count_along(op.result, op.iota_dimension.value.data)

    def run(stated: Array) -> tuple[Array, ...]:
        _check_shape(shape, stated)
        return (count(),)

    return run


def dynamic_pad(op: DynamicPadOp) -> Kernel:
    shape = shape_at(op.result)

    def run(operand: Array, value: Array, *amounts: Array) -> tuple[Array, ...]:
        result = padded(operand, value, *([int(amount) for amount in side] for side in amounts))
        if result.shape != shape:
            raise ValueError(f"the padding makes a shape of {list(result.shape)}, the result has {list(shape)}")
        return (result,)

    return run


def real_dynamic_slice(op: RealDynamicSliceOp) -> Kernel:
    """Make the kernel. It raises `ValueError` for a range that is not within the operand, whose slice is undefined."""
    shape = shape_at(op.result)

    def run(operand: Array, *numbers: Array) -> tuple[Array, ...]:
        ranges = [tuple(int(part) for part in parts) for parts in zip(*numbers, strict=True)]
        for extent, (start, limit, stride) in zip(operand.shape, ranges, strict=True):
            if not 0 <= start <= limit <= extent or stride < 1:
                raise ValueError(f"{start}:{limit}:{stride} is not a range within an extent of {extent}")
        result = operand[(*(slice(*part) for part in ranges), ...)].copy()
        if result.shape != shape:
            raise ValueError(f"the slice has a shape of {list(result.shape)}, the result has {list(shape)}")
        return (result,)

    return run


def get_dimension_size(op: GetDimensionSizeOp) -> Kernel:
    size = shape_at(op.operand)[op.dimension.value.data]
    return on_one(lambda operand: np.asarray(size, np.int32))


def set_dimension_size(op: SetDimensionSizeOp) -> Kernel:
    """Return the operand, if its size is that of the result; a smaller size has a type with a dynamic extent."""
    shape, dimension = shape_at(op.result), op.dimension.value.data

    def run(operand: Array, size: Array) -> tuple[Array, ...]:
        if int(size) != shape[dimension] or operand.shape != shape:
            raise ValueError(f"the size is {int(size)}, that of the result is {shape[dimension]}")
        return (operand.copy(),)

    return run


def dynamic_gather(op: DynamicGatherOp) -> Kernel:
    gathered, shape = gather_with(op), shape_at(op.result)

    def run(operand: Array, indices: Array, sizes: Array) -> tuple[Array, ...]:
        result = gathered(operand, indices, [int(size) for size in sizes])
        if result.shape != shape:
            raise ValueError(f"the slices make a shape of {list(result.shape)}, the result has {list(shape)}")
        return (result,)

    return run


def dynamic_conv(op: DynamicConvOp) -> Kernel:
    still = moves_of(op, None)
    shape = shape_at(op.result)

    def run(lhs: Array, rhs: Array, padding: Array) -> tuple[Array, ...]:
        pairs = [(int(low), int(high)) for low, high in padding]
        moves = [replace(move, low=low, high=high) for move, (low, high) in zip(still, pairs, strict=True)]
        result = convolve(op, moves)(lhs, rhs)
        if result.shape != shape:
            raise ValueError(f"the padding makes a shape of {list(result.shape)}, the result has {list(shape)}")
        return (result,)

    return run
