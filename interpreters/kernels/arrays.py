"""Conventions of all kernels: the arrays that they take and return, and the types with which they compute.

A kernel is made once for an operation, and called with one numpy array for each operand. It returns new row-major
arrays that own their buffers, with two exceptions: views of operands, and splat constants, which are views of a single
element with stride zero. Tuples and futures are Python tuples, and a token is None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import UnrankedMemRefType, UnrankedTensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.constants.elements import FLOATS, DType, dtype_of
from ...dialects.stablehlo.tuples import GetTupleElementOp
from ...support.type_guards import is_shaped

Array: TypeAlias = NDArray[Any]
Compute: TypeAlias = Callable[..., Array]
"""A function from operands to one result, of any layout. It may return a numpy scalar for a tensor of rank 0."""
Kernel: TypeAlias = Callable[..., tuple[Array, ...]]
Combine: TypeAlias = Callable[..., tuple[Array, ...]]
"""A function that applies a region on scalars to vectors. It takes the arguments of the region, then its captures."""

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
I8, U8 = np.dtype(np.int8), np.dtype(np.uint8)

# Kernels compute in f32 for small floats, and round once. For + - * / and sqrt the result is correctly rounded, because
# f32 has at least 2p + 2 digits for types with p digits (Figueroa, "When is double rounding innocuous?", 1995).
WIDER: dict[DType, DType] = {
    **{dtype: F32 for dtype in FLOATS.values() if dtype.itemsize < F32.itemsize},
    np.dtype(ml_dtypes.int4): I8,
    np.dtype(ml_dtypes.int2): I8,
    np.dtype(ml_dtypes.uint4): U8,
    np.dtype(ml_dtypes.uint2): U8,
}


def wide(dtype: DType) -> DType:
    """Return the type with which kernels compute for elements of `dtype`."""
    return WIDER.get(dtype, dtype)


def kind_of(dtype: DType) -> str:
    """Return the kind of an element type: `b`, `i`, `u`, `f` or `c`. For the types of `ml_dtypes`, numpy itself reports
    void."""
    return wide(dtype).kind


def dtype_at(value: SSAValue) -> DType:
    """Return the numpy element type of a tensor or scalar. Raises `ValueError` if numpy has no such type."""
    if _is_unranked(value.type):
        raise ValueError(f"the rank of {value.type} is unknown, but the interpreter supports only static shapes")
    return dtype_of(value.type.element_type if is_shaped(value.type) else value.type)


def _is_unranked(type_: Attribute) -> bool:
    return isinstance(type_, UnrankedTensorType | UnrankedMemRefType)


def shape_at(value: SSAValue) -> tuple[int, ...]:
    """Return the shape of the array that represents a value, which is empty for a scalar. Raises `ValueError` for a
    dynamic shape."""
    shape = value.type.get_shape() if is_shaped(value.type) else ()
    if any(extent < 0 for extent in shape):
        raise ValueError(f"the shape of {value.type} is dynamic, but the interpreter supports only static shapes")
    return shape


def on_one(compute: Callable[[Array], Array]) -> Kernel:
    """Make a kernel from a function with one operand and one result."""

    def run(operand: Array) -> tuple[Array, ...]:
        return (compute(operand),)

    return run


def on_two(compute: Callable[[Array, Array], Array]) -> Kernel:
    """Make a kernel from a function with two operands and one result."""

    def run(left: Array, right: Array) -> tuple[Array, ...]:
        return (compute(left, right),)

    return run


def row_by_row(values: Array, dtype: DType | None = None) -> Array:
    """Return the array itself if it is row-major, otherwise a row-major copy.

    For other layouts, numpy may add in a different order or use different instructions, so the bits of a result would
    depend on whether its operands are views.
    """
    return np.asarray(values, dtype, order="C")


def as_owned(values: Array, dtype: DType) -> Array:
    """Return `values` if it is a row-major array of type `dtype` that owns its buffer, otherwise a copy with these
    properties.
    """
    array = np.asarray(values).astype(dtype, order="C", copy=False)
    return array if array.flags.owndata else array.copy()


ValueKernel: TypeAlias = Callable[..., tuple[Any, ...]]


def tuple_(op: Operation) -> ValueKernel:
    """Make the kernel of `stablehlo.tuple`, which returns a tuple of the operands without copying them."""

    def run(*values: Any) -> tuple[Any, ...]:
        return (values,)

    return run


def element(op: GetTupleElementOp) -> ValueKernel:
    index = op.index.value.data

    def run(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (values[index],)

    return run


def token(op: Operation) -> ValueKernel:
    """Make the kernel of an operation on tokens. The kernel returns None, because operations run in program order
    without tokens."""

    def run(*tokens: None) -> tuple[Any, ...]:
        return (None,)

    return run


def async_done(op: Operation) -> ValueKernel:
    """Make the kernel of `stablehlo.async_done`, which returns copies of the arrays in the future operand."""

    def run(future: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(array.copy() for array in future)

    return run


def leaves(value: Any) -> list[Any]:
    """Return the arrays in a value, with nested tuples flattened."""
    if not isinstance(value, tuple):
        return [value]
    parts: tuple[Any, ...] = value  # pyright: ignore[reportUnknownVariableType]
    return [leaf for part in parts for leaf in leaves(part)]
