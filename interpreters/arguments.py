"""Arguments of a function as numpy arrays; arguments of other types are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from ..dialects.elements import DType
from ..support.diagnostics import Refusal
from .kernels.arrays import Array, dtype_at, row_by_row, shape_at


def types_of(function: FuncOp) -> list[tuple[tuple[int, ...], DType]]:
    """Shape and element type of each argument. Raises `Refusal` for a value that no array holds."""
    return [_type_of(argument) for argument in function.body.block.args]


def _type_of(argument: BlockArgument) -> tuple[tuple[int, ...], DType]:
    try:
        return shape_at(argument), dtype_at(argument)
    except ValueError as error:
        raise cannot_be_given(argument, str(error)) from error


def cannot_be_given(argument: BlockArgument, reason: str) -> Refusal:
    function = argument.block.parent_op()
    assert function is not None, "the block of an argument belongs to a function"
    number, type_ = argument.index, argument.type
    return Refusal(function, f"argument #{number} of type {type_} cannot be given, so nothing is run: {reason}")


def checked_inputs(function: FuncOp, inputs: Sequence[Any]) -> list[Array]:
    """The inputs as row-major arrays of exactly the argument types. Raises `ValueError` for other inputs."""
    types = types_of(function)
    if len(inputs) != len(types):
        raise ValueError(f"function '{function.sym_name.data}' takes {len(types)} inputs, not {len(inputs)}")
    arrays = [np.asarray(value) for value in inputs]
    for index, (array, (shape, dtype)) in enumerate(zip(arrays, types, strict=True)):
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(f"input #{index} is {array.dtype}{list(array.shape)}, expected {dtype}{list(shape)}")
    return [row_by_row(array) for array in arrays]
