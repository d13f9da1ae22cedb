"""Kernels of the tensor dialect. Tensors are values, so a write creates a new tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Operation

from .arrays import Array, Combine, Kernel, dtype_at, on_one, on_two, shape_at

# The entry of a static list for a number that is an operand.
DYNAMIC = -(1 << 63)


def empty(op: tensor.EmptyOp) -> Kernel:
    """Make the kernel of `tensor.empty`, which returns zeros, because the elements are unspecified and runs must be
    reproducible."""
    shape, dtype = shape_at(op.tensor), dtype_at(op.tensor)
    return lambda *sizes: (np.zeros(shape, dtype),)


def splat(op: tensor.SplatOp) -> Kernel:
    shape, dtype = shape_at(op.result), dtype_at(op.result)

    def run(value: Array, *sizes: Array) -> tuple[Array, ...]:
        return (np.full(shape, value, dtype),)

    return run


def from_elements(op: tensor.FromElementsOp) -> Kernel:
    shape, dtype = shape_at(op.result), dtype_at(op.result)
    return lambda *values: (np.array([value[()] for value in values], dtype).reshape(shape),)


def dim(op: tensor.DimOp) -> Kernel:
    shape = shape_at(op.source)
    return on_two(lambda source, index: np.asarray(shape[_inside(index, len(shape))], np.int64))


def cast(op: tensor.CastOp) -> Kernel:
    """Make the kernel of `tensor.cast`, which returns its operand. Raises `ValueError` if operand and result differ in
    shape."""
    if shape_at(op.source) != shape_at(op.dest):
        raise ValueError(
            f"its operand has shape {list(shape_at(op.source))}, but its result has shape {list(shape_at(op.dest))}"
        )
    return on_one(lambda source: source)


def reshape(op: Operation) -> Kernel:
    """Make the kernel of a reshape. The kernel returns a view if the operand is row-major, otherwise a copy, and
    ignores shape operands."""
    shape = shape_at(op.results[0])

    def run(source: Array, *sizes: Array) -> tuple[Array, ...]:
        return (source.reshape(shape),)

    return run


def concat(op: tensor.ConcatOp) -> Kernel:
    shape = shape_at(op.result)
    dtype = dtype_at(op.result)
    along = op.dim.value.data
    return lambda *operands: (np.concatenate(operands, axis=along, out=np.empty(shape, dtype)),)


def extract(op: tensor.ExtractOp) -> Kernel:
    def run(source: Array, *indices: Array) -> tuple[Array, ...]:
        return (np.array(source[_place(indices, source.shape)]),)

    return run


def insert(op: tensor.InsertOp) -> Kernel:
    def run(scalar: Array, dest: Array, *indices: Array) -> tuple[Array, ...]:
        result = dest.copy()
        result[_place(indices, dest.shape)] = scalar
        return (result,)

    return run


def _place(indices: Sequence[Array], shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(_inside(index, extent) for index, extent in zip(indices, shape, strict=True))


def _inside(index: Array, extent: int) -> int:
    if not 0 <= int(index) < extent:
        raise ValueError(f"index {int(index)} is out of bounds for the extent {extent}")
    return int(index)


def extract_slice(op: tensor.ExtractSliceOp) -> Kernel:
    """Make the kernel of `tensor.extract_slice`, which returns a copy without the dimensions of extent 1 that the
    result type omits."""
    slices, shape = _Slices(op), shape_at(op.result)

    def run(source: Array, *sizes: Array) -> tuple[Array, ...]:
        return (source[slices.select(source.shape, sizes)].reshape(shape).copy(),)

    return run


def insert_slice(op: tensor.InsertSliceOp) -> Kernel:
    slices = _Slices(op)

    def run(source: Array, dest: Array, *sizes: Array) -> tuple[Array, ...]:
        result = dest.copy()
        window = result[slices.select(dest.shape, sizes)]
        window[...] = source.reshape(window.shape)
        return (result,)

    return run


class _Slices:
    """The offsets, sizes and strides of a slice. Some are static, and others are operands."""

    def __init__(self, op: tensor.ExtractSliceOp | tensor.InsertSliceOp):
        lists = (op.static_offsets, op.static_sizes, op.static_strides)
        self.static = [_numbers(numbers) for numbers in lists]

    def select(self, shape: Sequence[int], dynamic: Sequence[Array]) -> tuple[slice, ...]:
        """Return a slice for each dimension of an array with this shape. Raises `ValueError` if a slice is out of
        bounds.

        `dynamic`: the values of the offsets, sizes and strides that are operands, in order.
        """
        remaining = iter(dynamic)
        lists = [
            [int(next(remaining)) if number == DYNAMIC else number for number in numbers] for numbers in self.static
        ]
        slices = list[slice]()
        for offset, size, stride, extent in zip(*lists, shape, strict=True):
            last = offset + (size - 1) * stride
            if size > 0 and not (stride > 0 and offset >= 0 and last < extent):
                raise ValueError(f"the slice from {offset} to {last} is out of bounds for the extent {extent}")
            slices.append(slice(offset, last + 1, stride) if size > 0 else slice(0, 0))
        return tuple(slices)


def _numbers(values: DenseArrayBase[IntegerType]) -> tuple[int, ...]:
    return tuple(int(value) for value in values.get_values())


def pad(op: tensor.PadOp, combine: Combine) -> Kernel:
    """Make the kernel of `tensor.pad`. The region of the operation computes each padding element from the indices of
    the element."""
    shape, dtype = shape_at(op.result), dtype_at(op.result)
    low = _numbers(op.static_low)
    high = _numbers(op.static_high)
    count = len(op.operands)
    if DYNAMIC in (*low, *high) or any(amount < 0 for amount in (*low, *high)):
        raise ValueError("the interpreter supports only static, non-negative padding")

    def run(source: Array, *outer: Array) -> tuple[Array, ...]:
        indices = np.indices(shape).reshape(len(shape), prod(shape))
        (around,) = combine(*indices, *outer[count - 1 :])
        result = np.array(np.broadcast_to(around, (prod(shape),)), dtype).reshape(shape)
        window = tuple(slice(first, first + extent) for first, extent in zip(low, source.shape, strict=True))
        result[window] = source
        return (result,)

    return run
