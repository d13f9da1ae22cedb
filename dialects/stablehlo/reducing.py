"""Common parts of `reduce` and `reduce_window`."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.irdl import (
    IRDLOperation,
    SameVariadicOperandSize,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .checks import Shape, check_count, check_element, check_shape, element_of, shape_of
from .combiners import check_promotable, check_slices, combined_types
from .tensors import NUMBERS


class ReducingOp(IRDLOperation):
    """Combines elements of its inputs with a region, from an initial value for each input."""

    inputs = var_operand_def(NUMBERS)
    init_values = var_operand_def(NUMBERS)
    result = var_result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)


def check_counts(op: ReducingOp) -> None:
    if not op.inputs:
        raise VerifyException("there is nothing to reduce")
    check_count("initial values", len(op.init_values), len(op.inputs))
    check_count("results", len(op.result), len(op.inputs))


def check_same_shapes(op: ReducingOp) -> None:
    for value in op.inputs:
        check_shape("an input", shape_of(value), shape_of(op.inputs[0]))


def check_body(op: ReducingOp, shape: Shape) -> None:
    """Check that the region works on scalars, or on tensors with extents of `shape`, and that the inputs are promotable
    to its types."""
    types = combined_types(op.body.block, len(op.inputs))
    check_slices(types, shape)
    for value, type_ in zip(op.inputs, types, strict=True):
        check_promotable("an input", element_of(value), type_.element_type)


def check_inits(op: ReducingOp) -> None:
    for init, type_ in zip(op.init_values, combined_types(op.body.block, len(op.inputs)), strict=True):
        check_shape("an initial value", shape_of(init), type_.get_shape())
        check_promotable("an initial value", element_of(init), type_.element_type)


def check_result_elements(op: ReducingOp) -> None:
    for result, type_ in zip(op.result, combined_types(op.body.block, len(op.inputs)), strict=True):
        check_element("a result", element_of(result), type_.element_type)
