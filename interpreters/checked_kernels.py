"""Result checks for user-registered kernels. A wrong result is reported at the operation that returns it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import UnregisteredAttr
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from ..rules.buffers import is_view
from ..support.counted import counted
from .kernels.arrays import Array, Kernel, dtype_at, row_by_row, shape_at
from .user_kernels import MakeKernel


def add_result_checks(op: Operation, make: MakeKernel) -> Kernel:
    """Return a user-registered kernel with checks of its results.

    The returned kernel raises `ValueError` if the original kernel raises an exception, or if a result does not match
    the types of the operation. Unless the operation is declared to be a view, a result that is an operand or that does
    not own its buffer is copied.

    `make`: returns the original kernel.
    """
    compute = _call(make, op)
    returns_views = is_view(op)

    def run(*operands: Array) -> tuple[Array, ...]:
        results = cast("object", _call(compute, *operands))
        if not isa(results, tuple[Any, ...]) or len(results) != len(op.results):
            raise ValueError(f"its kernel must return a tuple of {counted(len(op.results), 'array')}")
        arrays = [_checked_array(value, result) for value, result in zip(results, op.results, strict=True)]
        return tuple(arrays if returns_views else [_copy_unless_owned(array, operands) for array in arrays])

    return run


def _call(function: Callable[..., Any], *operands: Any) -> Any:
    try:
        return function(*operands)
    except Exception as error:
        raise ValueError(f"its kernel raises {type(error).__name__}: {error}") from error


def _checked_array(value: Any, result: SSAValue) -> Array:
    if not isinstance(value, np.ndarray | np.generic):
        raise ValueError(f"its kernel must return numpy arrays, not {type(value).__name__}")
    array: Array = np.asarray(cast("Array", value))
    if isinstance(result.type, UnregisteredAttr):
        return array
    shape, dtype = shape_at(result), dtype_at(result)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"its kernel returns {array.dtype}{list(array.shape)}, expected {dtype}{list(shape)}")
    return array


def _copy_unless_owned(array: Array, operands: Sequence[Array]) -> Array:
    dense = row_by_row(array)
    return dense if dense.flags.owndata and not any(dense is operand for operand in operands) else dense.copy()
