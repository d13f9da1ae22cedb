"""Kernels of convolution, `reduce_window` and `select_and_scatter`. The elements of each window become a row, and the
rows are multiplied or reduced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from xdsl.ir import Attribute

from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.convolution import ConvolutionOp, ConvolvingOp
from ...dialects.stablehlo.windows import DimWindow, ReduceWindowOp, SelectAndScatterOp, windows
from .arrays import Array, Combine, Kernel, as_owned, dtype_at, on_two, row_by_row, wide
from .conversion import convert
from .indexing import turns
from .movement import pad_array
from .scalar_bodies import rows_reducer


def windows_over(values: Array, fill: Array, moves: Sequence[DimWindow]) -> Array:
    """Return a view of the padded array with dimensions for the positions of the window, then for the elements in the
    window.

    Args:
        values: The array.
        fill: The value of padding elements.
        moves: The windows along the last dimensions. The leading dimensions have no windows, and stay in front.
    """
    kept = values.ndim - len(moves)
    interior = [0] * kept + [move.base_dilation - 1 for move in moves]
    low, high = ([0] * kept + [getattr(move, side) for move in moves] for side in ("low", "high"))
    around = pad_array(values, fill, low, high, interior)
    reach = [(move.size - 1) * move.window_dilation + 1 for move in moves]
    if any(extent < size for extent, size in zip(around.shape[kept:], reach, strict=True)):
        counts = [move.places(extent) for move, extent in zip(moves, values.shape[kept:], strict=True)]
        return np.empty((*values.shape[:kept], *counts, *(move.size for move in moves)), values.dtype)
    every = np.lib.stride_tricks.sliding_window_view(around, reach, axis=tuple(range(kept, values.ndim)))
    places = [slice(None, None, move.stride) for move in moves]
    positions = [slice(None, None, move.window_dilation) for move in moves]
    return every[(*[slice(None)] * kept, *places, *positions)]


def reduce_window(op: ReduceWindowOp, combine: Combine) -> Kernel:
    """Make the kernel of `stablehlo.reduce_window`. Padding elements have the initial value."""
    sizes = op.window_dimensions.get_values()
    count = len(op.inputs)
    moves = windows(sizes, op.window_strides, op.padding, op.base_dilations, op.window_dilations)
    results = [(shape_of(result), dtype_at(result)) for result in op.result]
    reduce_rows = rows_reducer(op.body.block, results[0][1], combine)

    def run(*operands: Array) -> tuple[Array, ...]:
        inputs, inits, outer = operands[:count], operands[count : 2 * count], operands[2 * count :]
        # The inputs are converted to the type of the initial value, so that padding elements are exact.
        converted = [convert(values, init.dtype) for values, init in zip(inputs, inits, strict=True)]
        views = [windows_over(values, init, moves) for values, init in zip(converted, inits, strict=True)]
        tables = [row_by_row(view).reshape(prod(results[0][0]), prod(sizes)) for view in views]
        reduced = reduce_rows(tables, inits, outer)
        return tuple(as_owned(np.reshape(row, to), dtype) for row, (to, dtype) in zip(reduced, results, strict=True))

    return run


def convolution(op: ConvolutionOp) -> Kernel:
    return on_two(convolve(op, spatial_windows(op, op.padding)))


def _spatial(op: ConvolvingOp) -> list[str]:
    """Return the labels of the spatial dimensions of a convolution, in order."""
    return sorted((label for label in op.dimension_numbers.data.rhs if label.isdigit()), key=int)


def spatial_windows(op: ConvolvingOp, padding: Attribute | None) -> list[DimWindow]:
    """Return the window of a convolution along each spatial dimension."""
    numbers = op.dimension_numbers.data
    sizes = [shape_of(op.rhs)[numbers.rhs.index(label)] for label in _spatial(op)]
    return windows(sizes, op.window_strides, padding, op.lhs_dilation, op.rhs_dilation)


def convolve(op: ConvolvingOp, moves: Sequence[DimWindow]) -> Callable[[Array, Array], Array]:
    """Return the convolution as a function of both operands.

    The function computes products and sums in the element type of the result, or in f32 if this type is smaller.
    """
    numbers = op.dimension_numbers.data
    spatial = _spatial(op)
    image = [numbers.lhs.index(label) for label in ("b", "f", *spatial)]
    kernel = [numbers.rhs.index(label) for label in ("o", "i", *spatial)]
    back = [("b", "f", *spatial).index(label) for label in numbers.result]
    reversal = op.window_reversal.get_values() if op.window_reversal is not None else [0] * len(spatial)
    flipped = tuple(2 + index for index, reverse in enumerate(reversal) if reverse)
    feature_groups, batch_groups = op.feature_group_count.value.data, op.batch_group_count.value.data
    groups = feature_groups * batch_groups
    dtype = dtype_at(op.result)
    working = wide(dtype)

    def run(lhs: Array, rhs: Array) -> Array:
        lhs_windows = windows_over(convert(lhs, working).transpose(image), np.zeros((), working), moves)
        batch, features, *window_shape = lhs_windows.shape
        places = window_shape[: len(moves)]
        weights: Array = np.flip(convert(rhs, working).transpose(kernel), flipped)
        split = lhs_windows.reshape(
            batch_groups, batch // batch_groups, feature_groups, features // feature_groups, *window_shape
        )
        # The dimensions become groups, batch and window positions, then the summed dimensions: features and elements of
        # the window.
        order = (0, 2, 1, *range(4, 4 + len(moves)), 3, *range(4 + len(moves), split.ndim))
        outputs = weights.shape[0] // groups
        inner = prod(weights.shape[1:])
        rows = row_by_row(split.transpose(order)).reshape(groups, batch // batch_groups * prod(places), inner)
        columns = row_by_row(weights).reshape(groups, outputs, inner).transpose(0, 2, 1)
        products = np.matmul(rows, row_by_row(columns)).reshape(groups, batch // batch_groups, *places, outputs)
        joined = np.moveaxis(products, (0, -1), (1, 2)).reshape(batch // batch_groups, weights.shape[0], *places)
        return as_owned(joined.transpose(back), dtype)

    return run


def select_and_scatter(op: SelectAndScatterOp, select: Combine, scatter: Combine) -> Kernel:
    """Make the kernel of `stablehlo.select_and_scatter`.

    If several candidates of a window are equal, the kernel selects the first one. The values that are scattered to one
    element are combined in the order of the windows.
    """
    shape, dtype = shape_of(op.operand), dtype_at(op.result)
    sizes = op.window_dimensions.get_values() if op.window_dimensions is not None else (1,) * len(shape)
    places = windows_over(
        np.arange(prod(shape)).reshape(shape), np.array(-1), windows(sizes, op.window_strides, op.padding)
    ).reshape(-1, prod(sizes))

    def run(operand: Array, source: Array, init: Array, *captured: Array) -> tuple[Array, ...]:
        chosen = _selected_positions(row_by_row(operand).reshape(-1), captured)
        result = np.full(prod(shape), init, dtype)
        values = row_by_row(source).reshape(-1)
        for turn in turns(chosen, chosen >= 0):
            at = chosen[turn]
            (combined,) = scatter(result[at], values[turn], *captured)
            result[at] = combined.astype(dtype, copy=False)
        return (result.reshape(shape),)

    def _selected_positions(values: Array, captured: tuple[Array, ...]) -> Array:
        """Return the position of the selected element of each window; -1 for a window that lies outside the operand."""
        best = np.full(len(places), -1)
        for candidate in places.T:
            (stays,) = select(values[best], values[candidate], *captured)
            best = np.where((candidate >= 0) & ((best < 0) | ~stays), candidate, best)
        return best

    return run
