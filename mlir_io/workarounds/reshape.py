"""A workaround for `tensor.reshape`.

xDSL multiplies unknown extents as if they were -1, and therefore refuses to reshape `tensor<128xf32>` to
`tensor<?x?xf32>`.
"""

from __future__ import annotations

import math
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    TensorType,
    f32,
)
from xdsl.dialects.tensor import ReshapeOp
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

_xdsl_verify_reshape = ReshapeOp.verify_


def repair_reshape() -> None:
    """Apply the workaround for `tensor.reshape`."""
    if not accepts_unknown_extents():
        ReshapeOp.verify_ = _verify_reshape


def accepts_unknown_extents() -> bool:
    vector, shape = (create_ssa_value(TensorType(element, [2])) for element in (f32, IndexType()))
    reshape = ReshapeOp(vector, shape, TensorType(f32, [DYNAMIC_INDEX, DYNAMIC_INDEX]))
    try:
        reshape.verify_()
    except VerifyException:
        return False
    return True


def _verify_reshape(self: ReshapeOp) -> None:
    """Verify a reshape, comparing the numbers of elements only if all extents are known.

    This replaces `ReshapeOp.verify_`.
    """
    shapes = [cast(TensorType, value.type).get_shape() for value in (self.source, self.shape, self.result)]
    if all(DYNAMIC_INDEX not in shape for shape in shapes):
        return _xdsl_verify_reshape(self)
    source, shape, result = shapes
    if cast(TensorType, self.source.type).element_type != self.result.type.element_type:
        raise VerifyException("element types of source and result tensor types should be the same")
    if len(shape) != 1:
        raise VerifyException("shape tensor must have a rank one")
    if shape[0] == DYNAMIC_INDEX:
        raise VerifyException("cannot use shape operand with dynamic length to reshape to a tensor of known rank")
    if shape[0] != len(result):
        raise VerifyException("length of shape operand differs from the result's tensor rank")
    if DYNAMIC_INDEX not in source + result and math.prod(source) != math.prod(result):
        raise VerifyException("source and result tensor should have the same number of elements")
