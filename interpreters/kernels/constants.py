"""Constants. A splat constant is a view of a single element, whatever its shape."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseResourceAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from ...dialects.dense import DenseAttr, to_numpy
from ...dialects.stablehlo.creation import ConstantOp
from ...support.type_guards import is_standard_dense
from .arrays import Array, Kernel, dtype_at, owned
from .conversion import convert


def constant(op: ConstantOp | arith.ConstantOp) -> Kernel:
    values = _dense(op.value)
    if values is None:
        return _number(op)
    if _is_repeated(values):
        element = values.reshape(-1)[:1].copy().reshape(())
        return lambda: (np.broadcast_to(element.copy(), values.shape),)
    return lambda: (np.array(values, order="C"),)


def is_view(op: Operation) -> bool:
    """Whether the operation is a constant whose kernel returns a view of one element."""
    if not isinstance(op, ConstantOp | arith.ConstantOp):
        return False
    values = _dense(op.value)
    return values is not None and _is_repeated(values)


def _dense(value: Attribute) -> Array | None:
    if isinstance(value, DenseResourceAttr):
        raise ValueError("the data of a dense resource is not part of the program")
    return to_numpy(value) if isinstance(value, DenseAttr) or is_standard_dense(value) else None


def _is_repeated(values: Array) -> bool:
    return values.size > 1 and not any(values.strides)


def _number(op: ConstantOp | arith.ConstantOp) -> Kernel:
    value, dtype = op.value, dtype_at(op.results[0])
    assert isinstance(value, IntegerAttr | FloatAttr), "verified: a constant is a number, or dense"
    number = owned(convert(np.asarray(value.value.data), dtype), dtype)
    return lambda: (number.copy(),)
