"""Kernels of CHLO's broadcasting operations, which broadcast the operands and apply the elementwise kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr

from ...dialects.chlo.broadcasting import (
    BroadcastBinaryOp,
    BroadcastSelectOp,
    aligned_shape,
)
from ...dialects.chlo.constants import ConstantLikeOp
from ...dialects.constants.elements import round_to
from .arrays import Array, Kernel, dtype_at, kind_of, on_one, row_by_row, shape_at
from .chlo import SCIPY, next_after, special
from .elementwise import compare, complex_of_parts, kernel_named, select

BY_NAME: dict[str, Callable[[Any], Kernel]] = {
    "compare": compare,
    "complex": complex_of_parts,
    "next_after": next_after,
}


def broadcast_binary(op: BroadcastBinaryOp) -> Kernel:
    word = op.name.removeprefix("chlo.broadcast_")
    shape, dimensions = shape_at(op.result), op.dimensions
    make = BY_NAME.get(word) or partial(special if word in SCIPY else kernel_named, word)
    compute = make(op)

    def broadcast(operand: Array) -> Array:
        aligned = operand.reshape(aligned_shape(operand.shape, len(shape), dimensions))
        return row_by_row(np.broadcast_to(aligned, shape))

    def run(left: Array, right: Array) -> tuple[Array, ...]:
        return compute(broadcast(left), broadcast(right))

    return run


def broadcast_select(op: BroadcastSelectOp) -> Kernel:
    shape, compute = shape_at(op.result), select(op)
    return lambda *operands: compute(*(np.broadcast_to(operand, shape) for operand in operands))


def constant_like(op: ConstantLikeOp) -> Kernel:
    """Make the kernel of `chlo.constant_like`. Raises `ValueError` for a value that is neither an integer nor a
    float."""
    dtype, value = dtype_at(op.result), op.value
    if not isinstance(value, FloatAttr | IntegerAttr):
        raise ValueError(f"{op.name} supports only integers and floats, not {value}")
    number = np.array(value.value.data)
    element = round_to(number, dtype) if kind_of(dtype) == "f" else number.astype(dtype)
    return on_one(lambda operand: np.full(operand.shape, element, dtype))
