"""Kernels of operations that only create or move elements.

The array of a splat constant is a view of a single element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseResourceAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.constants.dense import DenseAttr, to_numpy
from ...dialects.constants.dense_literal import count_of
from ...dialects.constants.elements import SUB_BYTE_BITS, dtype_of
from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.creation import ConstantOp, IotaOp
from ...dialects.stablehlo.padding import PadOp, ReverseOp
from ...dialects.stablehlo.shapes import BroadcastInDimOp, ReshapeOp, TransposeOp
from ...dialects.stablehlo.slices import ConcatenateOp, DynamicSliceOp, DynamicUpdateSliceOp, SliceOp
from ...mlir_io.resources import resource_bytes, unknown_content
from ...support.type_guards import is_standard_dense, is_tensor
from .arrays import Array, Kernel, as_owned, dtype_at, on_one, on_two
from .conversion import convert


def constant(op: ConstantOp | arith.ConstantOp) -> Kernel:
    values = _dense(op.value)
    if values is None:
        return _number(op)
    if _is_repeated(values):
        element = values.reshape(-1)[:1].copy().reshape(())
        return lambda: (np.broadcast_to(element.copy(), values.shape),)
    return lambda: (np.array(values, order="C"),)


def is_splat(op: Operation) -> bool:
    """Return whether the operation is a splat constant, whose kernel returns a view of a single element."""
    if not isinstance(op, ConstantOp | arith.ConstantOp):
        return False
    values = _dense(op.value)
    return values is not None and _is_repeated(values)


def _dense(value: Attribute) -> Array | None:
    if isinstance(value, DenseResourceAttr):
        return _resource(value)
    return to_numpy(value) if isinstance(value, DenseAttr) or is_standard_dense(value) else None


def _resource(value: DenseResourceAttr) -> Array:
    """Return the elements of a dense resource. Raises `ValueError` if they are unknown or do not fit the type."""
    name = value.resource_handle.data
    if (raw := resource_bytes(name)) is None:
        raise ValueError(unknown_content(name))
    type_ = value.type
    if not is_tensor(type_):
        raise ValueError(f"its data is the resource '{name}' of the type {type_}; only tensors are supported")
    dtype = dtype_of(type_.element_type)
    if dtype in SUB_BYTE_BITS:
        raise ValueError(f"the resource '{name}' has elements that are narrower than a byte; write a constant instead")
    if len(raw) != (expected := count_of(type_) * dtype.itemsize):
        raise ValueError(f"the resource '{name}' has {len(raw)} bytes, but the type {type_} needs {expected}")
    return np.frombuffer(raw, dtype).reshape(type_.get_shape())


def _is_repeated(values: Array) -> bool:
    return values.size > 1 and not any(values.strides)


def _number(op: ConstantOp | arith.ConstantOp) -> Kernel:
    value, dtype = op.value, dtype_at(op.results[0])
    assert isinstance(value, IntegerAttr | FloatAttr), "verified: a constant has a number or a dense attribute"
    number = as_owned(convert(np.asarray(value.value.data), dtype), dtype)
    return lambda: (number.copy(),)


def iota(op: IotaOp) -> Kernel:
    count = count_along(op.output, op.iota_dimension.value.data)
    return lambda: (count(),)


def count_along(result: SSAValue, along: int) -> Callable[[], Array]:
    """Return a function that returns an array with the type of `result`. The value of each element is its index along
    one dimension."""
    shape, dtype = shape_of(result), dtype_at(result)

    def run() -> Array:
        line = convert(np.arange(shape[along]), dtype)
        column = line.reshape([-1 if dimension == along else 1 for dimension in range(len(shape))])
        return np.array(np.broadcast_to(column, shape), order="C")

    return run


def reshape(op: ReshapeOp) -> Kernel:
    """Make the kernel of `stablehlo.reshape`, which returns a view if the operand is row-major, otherwise a copy."""
    shape = shape_of(op.result)
    return on_one(lambda operand: operand.reshape(shape))


def transpose(op: TransposeOp) -> Kernel:
    """Make the kernel of `stablehlo.transpose`, which returns a view."""
    permutation = op.permutation.get_values()
    return on_one(lambda operand: operand.transpose(permutation))


def broadcast_in_dim(op: BroadcastInDimOp) -> Kernel:
    """Make the kernel of `stablehlo.broadcast_in_dim`, which returns a view that repeats elements with stride zero."""
    return on_one(broadcast_to(shape_of(op.result), op.broadcast_dimensions.get_values()))


def broadcast_to(shape: Sequence[int], dimensions: Sequence[int]) -> Callable[[Array], Array]:
    """Return a function that broadcasts an array to `shape`. Dimension i of the array becomes dimension
    `dimensions[i]`."""
    permutation = sorted(range(len(dimensions)), key=dimensions.__getitem__)
    index = tuple(slice(None) if dimension in dimensions else None for dimension in range(len(shape)))
    return lambda operand: np.broadcast_to(operand.transpose(permutation)[(*index, ...)], shape)


def slice_(op: SliceOp) -> Kernel:
    index = (*(slice(*bounds) for bounds in op.ranges()), ...)
    return on_one(lambda operand: operand[index].copy())


def concatenate(op: ConcatenateOp) -> Kernel:
    shape = shape_of(op.result)
    dtype = dtype_at(op.result)
    along = op.dimension.value.data
    return lambda *operands: (np.concatenate(operands, axis=along, out=np.empty(shape, dtype)),)


def reverse(op: ReverseOp) -> Kernel:
    dimensions = op.dimensions.get_values()
    return on_one(lambda operand: np.flip(operand, dimensions).copy())


def pad(op: PadOp) -> Kernel:
    amounts = (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
    low, high, interior = (amount.get_values() for amount in amounts)
    return on_two(lambda operand, value: pad_array(operand, value, low, high, interior))


def pad_array(operand: Array, value: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """Return a copy of `operand` with `value` before, after and between the elements along each dimension."""
    amounts = list(zip(operand.shape, low, high, interior, strict=True))
    sums = [below + extent + max(extent - 1, 0) * between + above for extent, below, above, between in amounts]
    shape = [max(extent, 0) for extent in sums]
    ranges = [
        _places(extent, new, below, between) for (extent, below, _, between), new in zip(amounts, shape, strict=True)
    ]
    source, target = (tuple(pair[side] for pair in ranges) for side in (0, 1))
    result = np.empty(shape, operand.dtype)
    result[...] = value
    result[(*target, ...)] = operand[(*source, ...)]
    return result


def _places(before: int, after: int, low: int, interior: int) -> tuple[slice, slice]:
    """Return the elements along a dimension that remain (negative padding removes elements), and their positions in the
    result."""
    step = interior + 1
    first = max(0, -(low // step))
    count = max(0, min(before, -((low - after) // step)) - first)
    start = low + first * step
    return slice(first, first + count), slice(start, start + count * step, step) if count else slice(0, 0)


def dynamic_slice(op: DynamicSliceOp) -> Kernel:
    shape = shape_of(op.operand)
    sizes = op.slice_sizes.get_values()

    def run(operand: Array, *starts: Array) -> tuple[Array, ...]:
        return (operand[_window(starts, sizes, shape)].copy(),)

    return run


def dynamic_update_slice(op: DynamicUpdateSliceOp) -> Kernel:
    shape, sizes = shape_of(op.operand), shape_of(op.update)

    def run(operand: Array, update: Array, *starts: Array) -> tuple[Array, ...]:
        result = operand.copy()
        result[_window(starts, sizes, shape)] = update
        return (result,)

    return run


def _window(starts: Sequence[Array], sizes: Sequence[int], shape: Sequence[int]) -> tuple[Any, ...]:
    """Return the numpy index of a dynamic slice. The starts are clamped to keep the slice in bounds."""
    kept = [min(max(int(start), 0), extent - size) for start, size, extent in zip(starts, sizes, shape, strict=True)]
    return (*(slice(start, start + size) for start, size in zip(kept, sizes, strict=True)), ...)
