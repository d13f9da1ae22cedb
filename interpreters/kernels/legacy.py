"""Kernels of the operations that StableHLO has only for old exporters: dot, einsum, broadcast, torch_index_select."""

from __future__ import annotations

import numpy as np

from ...dialects.constants.elements import DType
from ...dialects.stablehlo.legacy import BroadcastOp, DotOp, EinsumFormatOp, TorchIndexSelectOp
from .arrays import Array, Kernel, as_owned, dtype_at, on_one, on_two, row_by_row, shape_at, wide
from .conversion import convert


def dot(op: DotOp) -> Kernel:
    """Make the kernel of `stablehlo.dot`.

    The kernel computes products and sums in the element type of the result, or in f32 if this type is smaller.
    """
    dtype = dtype_at(op.result)
    working = wide(dtype)
    return on_two(lambda lhs, rhs: as_owned(np.matmul(_in(lhs, working), _in(rhs, working)), dtype))


def _in(values: Array, dtype: DType) -> Array:
    return row_by_row(values if values.dtype == dtype else convert(values, dtype))


def broadcast(op: BroadcastOp) -> Kernel:
    """Make the kernel of `stablehlo.broadcast`, which returns a view that repeats elements with stride zero."""
    shape = shape_at(op.result)
    return on_one(lambda operand: np.broadcast_to(operand, shape))


def einsum(op: EinsumFormatOp) -> Kernel:
    """Make the kernel of `stablehlo.einsum`.

    The kernel computes products and sums in the element type of the result, or in f32 if this type is smaller.
    """
    equation, dtype = op.equation, dtype_at(op.result)
    working = wide(dtype)
    # `np.einsum` accepts integers as labels.
    numbers = {label: number for number, label in enumerate(equation.extents)}
    inputs = [[numbers[label] for label in labels] for labels in equation.operands]
    output = [numbers[label] for label in equation.result]

    def run(*operands: Array) -> tuple[Array, ...]:
        terms = [
            part for pair in zip((_in(value, working) for value in operands), inputs, strict=True) for part in pair
        ]
        return (as_owned(np.einsum(*terms, output), dtype),)

    return run


def torch_index_select(op: TorchIndexSelectOp) -> Kernel:
    """Make the kernel of `torch_index_select`, which clamps indices that are out of range, like the gather to which XLA
    lowers it."""
    shape = shape_at(op.operand)
    dimension = op.dim.value.data
    batch = op.batch_dims.value.data

    def run(operand: Array, index: Array) -> tuple[Array, ...]:
        places = np.clip(np.asarray(index, np.int64), 0, shape[dimension] - 1)
        batches = tuple(
            np.arange(extent).reshape([-1 if at == own else 1 for at in range(places.ndim)])
            for own, extent in enumerate(shape[:batch])
        )
        # The dimensions between the batch dimensions and the selected dimension are moved to the front, and back
        # afterwards.
        between = range(batch, dimension)
        moved = np.moveaxis(operand, tuple(between), tuple(range(dimension - batch)))
        selected = moved[(slice(None),) * len(between) + (*batches, places)]
        return (as_owned(np.moveaxis(selected, tuple(range(len(between))), tuple(between)), operand.dtype),)

    return run
