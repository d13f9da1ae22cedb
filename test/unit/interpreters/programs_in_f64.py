"""Conversion of f32 programs to f64, as a reference for rounding errors."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, f32, f64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from recompute.dialects.constants.dense import DenseAttr, to_numpy
from recompute.dialects.stablehlo.creation import ConstantOp
from recompute.dialects.stablehlo.representation import ConvertOp
from recompute.dialects.stablehlo.shapes import BitcastConvertOp
from recompute.support.type_guards import is_tensor


def in_f64(module: ModuleOp) -> ModuleOp:
    """Return a copy that computes in f64. Random bits become f32 first, so that masks are the same."""
    copy = module.clone()
    for op in list(copy.walk()):
        if isinstance(op, BitcastConvertOp) and element_is_f32(op.result.type):
            convert = ConvertOp(op.result, widened(op.result.type))
            op.result.replace_all_uses_with(convert.result)
            convert.operands[0] = op.result
            Rewriter.insert_op(convert, InsertPoint.after(op))
            continue
        if isinstance(op, ConstantOp) and element_is_f32(op.output.type):
            assert isinstance(op.value, DenseAttr)
            op.value = DenseAttr.from_numpy(to_numpy(op.value).astype(np.float64), f64)
        if isinstance(op, FuncOp):
            inputs, outputs = (
                [widened(type_) for type_ in types] for types in (op.function_type.inputs, op.function_type.outputs)
            )
            op.function_type = FunctionType.from_lists(inputs, outputs)
        values: list[SSAValue] = [
            *op.results,
            *(argument for region in op.regions for block in region.blocks for argument in block.args),
        ]
        for value in values:
            Rewriter.replace_value_with_new_type(value, widened(value.type))
    return copy


def element_is_f32(type_: Attribute) -> bool:
    return is_tensor(type_) and type_.element_type == f32


def widened(type_: Attribute) -> Attribute:
    return TensorType(f64, type_.get_shape()) if is_tensor(type_) and element_is_f32(type_) else type_
