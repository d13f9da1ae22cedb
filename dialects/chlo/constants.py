"""CHLO operations that return constants.

Examples:
    %r = chlo.constant dense<1.0> : tensor<4xf32>
    %r = "chlo.constant_like"(%a) <{value = 1.0 : f32}> : (tensor<4xf32>) -> tensor<4xf32>
"""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.hints import isa

from ...support.type_guards import is_integer_attribute
from ..stablehlo.checks import check_element, check_shape, element_of, shape_of
from ..stablehlo.creation import DenseConstantOp
from .broadcasting import ANY_RANK, is_unranked


@irdl_op_definition
class ConstantOp(DenseConstantOp):
    """Return a constant: `chlo.constant dense<…> : tensor<…>`"""

    name = "chlo.constant"

    traits = traits_def(Pure())


@irdl_op_definition
class ConstantLikeOp(IRDLOperation):
    """Return a splat constant with the shape of the operand. The operation has no custom assembly."""

    name = "chlo.constant_like"

    operand = operand_def(ANY_RANK)
    value = prop_def(Attribute)
    result = result_def(ANY_RANK)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        if is_unranked(self):
            return
        value: Attribute = self.value
        if is_integer_attribute(value) or isa(value, FloatAttr):
            check_element("the result", element_of(self.result), value.type)
        check_shape("the result", shape_of(self.result), shape_of(self.operand))


CONSTANTS: list[type[Operation]] = [ConstantOp, ConstantLikeOp]
