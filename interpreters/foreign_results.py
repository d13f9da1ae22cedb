"""What a kernel of the user hands out, checked and made ours: a wrong shape should be an error where it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import UnregisteredAttr
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from ..rules.registry import facts_of
from .foreign import MakeKernel
from .kernels.arrays import Array, Kernel, dtype_at, row_by_row, shape_at


def checked(op: Operation, make: MakeKernel) -> Kernel:
    """Raises `ValueError` where a kernel fails, or a result is not what the operation's types say.

    Unless the operation is declared a view, results own their buffers.
    """
    compute = _asked(make, op)
    facts = facts_of(op)
    is_view = facts is not None and facts.view is not None

    def run(*operands: Array) -> tuple[Array, ...]:
        found = cast("object", _asked(compute, *operands))
        if not isa(found, tuple[Any, ...]) or len(found) != len(op.results):
            raise ValueError(f"its kernel should return a tuple of {len(op.results)} arrays")
        arrays = [_of_type(value, result) for value, result in zip(found, op.results, strict=True)]
        return tuple(arrays if is_view else [_owned(array, operands) for array in arrays])

    return run


def _asked(function: Callable[..., Any], *operands: Any) -> Any:
    try:
        return function(*operands)
    except Exception as error:
        raise ValueError(f"its kernel raises {type(error).__name__}: {error}") from error


def _of_type(value: Any, result: SSAValue) -> Array:
    if not isinstance(value, np.ndarray | np.generic):
        raise ValueError(f"its kernel should return numpy arrays, not {type(value).__name__}")
    array: Array = np.asarray(cast("Array", value))
    if isinstance(result.type, UnregisteredAttr):
        return array
    shape, dtype = shape_at(result), dtype_at(result)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"its kernel returns {array.dtype}{list(array.shape)}, expected {dtype}{list(shape)}")
    return array


def _owned(array: Array, operands: Sequence[Array]) -> Array:
    known = row_by_row(array)
    return known if known.flags.owndata and not any(known is operand for operand in operands) else known.copy()
