"""Operations that number, move or view elements without computing with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.creation import IotaOp
from ...dialects.stablehlo.shapes import BroadcastInDimOp, ReshapeOp, TransposeOp
from ...dialects.stablehlo.slices import ConcatenateOp, SliceOp
from .arrays import Array, Kernel, dtype_at, on_one
from .conversion import convert


def iota(op: IotaOp) -> Kernel:
    count = count_along(op.output, op.iota_dimension.value.data)
    return lambda: (count(),)


def count_along(result: SSAValue, along: int) -> Callable[[], Array]:
    """A function that returns the indices along a dimension, as an array of the result's type."""
    shape, dtype = shape_of(result), dtype_at(result)

    def run() -> Array:
        line = convert(np.arange(shape[along]), dtype)
        column = line.reshape([-1 if dimension == along else 1 for dimension in range(len(shape))])
        return np.array(np.broadcast_to(column, shape), order="C")

    return run


def reshape(op: ReshapeOp) -> Kernel:
    """A view if the operand is row-major."""
    shape = shape_of(op.result)
    return on_one(lambda operand: operand.reshape(shape))


def transpose(op: TransposeOp) -> Kernel:
    """A view."""
    permutation = op.permutation.get_values()
    return on_one(lambda operand: operand.transpose(permutation))


def broadcast_in_dim(op: BroadcastInDimOp) -> Kernel:
    """A view that repeats elements with stride zero."""
    return on_one(broadcast_to(shape_of(op.result), op.broadcast_dimensions.get_values()))


def broadcast_to(shape: Sequence[int], dimensions: Sequence[int]) -> Callable[[Array], Array]:
    """A function that repeats an array to the shape; its dimension i becomes dimension `dimensions[i]`."""
    permutation = sorted(range(len(dimensions)), key=dimensions.__getitem__)
    index = tuple(slice(None) if dimension in dimensions else None for dimension in range(len(shape)))
    return lambda operand: np.broadcast_to(operand.transpose(permutation)[(*index, ...)], shape)


def slice_(op: SliceOp) -> Kernel:
    index = (*(slice(*bounds) for bounds in op.ranges()), ...)
    return on_one(lambda operand: operand[index].copy())


def concatenate(op: ConcatenateOp) -> Kernel:
    shape, dtype, along = shape_of(op.result), dtype_at(op.result), op.dimension.value.data
    return lambda *operands: (np.concatenate(operands, axis=along, out=np.empty(shape, dtype)),)
