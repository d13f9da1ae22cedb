"""Pooling and its gradient. StableHLO prints both in the generic form."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import RecursiveMemoryEffect

from ...support.type_guards import AnyTensor
from .checks import check_count, check_element, check_shape, element_of, shape_of
from .combiners import check_promotable, check_scalars, combined_types
from .constraints import Constraint, verify_constraints
from .control import check_all, returned_types
from .moves import DimWindow, check_positive, moving, padding_of, windows
from .reducing import ReducingOp, check_body, check_counts, check_inits, check_result_elements, check_same_shapes
from .shapes import I64_ARRAY
from .tensors import NUMBERS

__all__ = ["WINDOWS", "DimWindow", "ReduceWindowOp", "SelectAndScatterOp", "windows"]


@irdl_op_definition
class ReduceWindowOp(ReducingOp):
    """The combined elements under a window, for each place of the window."""

    name = "stablehlo.reduce_window"

    window_dimensions = prop_def(I64_ARRAY)
    window_strides = opt_prop_def(I64_ARRAY)
    base_dilations = opt_prop_def(I64_ARRAY)
    window_dilations = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def()

    def verify_(self) -> None:
        verify_constraints(self, OF_REDUCE_WINDOW)

    def places(self) -> list[int]:
        """At how many places the window fits, along each dimension."""
        sizes = self.window_dimensions.get_values()
        moves = windows(sizes, self.window_strides, self.padding, self.base_dilations, self.window_dilations)
        return [move.places(extent) for move, extent in zip(moves, shape_of(self.inputs[0]), strict=True)]


@irdl_op_definition
class SelectAndScatterOp(IRDLOperation):
    """Adds each value of the source to the element that a window over the operand selects: the gradient of pooling."""

    name = "stablehlo.select_and_scatter"

    operand = operand_def(NUMBERS)
    source = operand_def(NUMBERS)
    init_value = operand_def(NUMBERS)
    window_dimensions = opt_prop_def(I64_ARRAY)
    window_strides = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def()
    result = result_def(TensorType)
    select = region_def("single_block")
    scatter = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        verify_constraints(self, OF_SELECT_AND_SCATTER)

    def sizes(self) -> Sequence[int]:
        """The extents of the window."""
        return self.window_dimensions.get_values() if self.window_dimensions is not None else ()

    def places(self) -> list[int]:
        """At how many places the window fits, along each dimension."""
        moves = windows(self.sizes(), self.window_strides, self.padding)
        return [move.places(extent) for move, extent in zip(moves, shape_of(self.operand), strict=True)]


def _rank(op: ReduceWindowOp | SelectAndScatterOp) -> int:
    return len(shape_of(op.operands[0]))


def _check_results(op: ReduceWindowOp) -> None:
    for result in op.result:
        check_shape("a result", shape_of(result), op.places())


OF_REDUCE_WINDOW: tuple[Constraint[ReduceWindowOp], ...] = (
    Constraint("C1", check_counts),
    Constraint("C2", check_same_shapes),
    Constraint("C4", lambda op: check_count("window_dimensions", len(op.window_dimensions), _rank(op))),
    Constraint("C5", lambda op: check_positive("window_dimensions", op.window_dimensions.get_values())),
    *moving(
        {"window_strides": ("C6", "C7"), "base_dilations": ("C8", "C9"), "window_dilations": ("C10", "C11")}, _rank
    ),
    Constraint("C12", lambda op: padding_of(op.padding, _rank(op))),
    Constraint("C13", lambda op: check_body(op, op.window_dimensions.get_values())),
    Constraint("C3", check_inits),
    Constraint("C15", _check_results),
    Constraint("C16", check_result_elements),
)


def _check_select(op: SelectAndScatterOp) -> None:
    scalar = TensorType(element_of(op.operand), [])
    check_all("the arguments of select", op.select.block.arg_types, [scalar, scalar])
    check_all("the values that select returns", returned_types(op.select.block), [TensorType(i1, [])])


def _combined(op: SelectAndScatterOp) -> AnyTensor:
    types = combined_types(op.scatter.block, 1)
    check_scalars(types)
    return types[0]


def _check_init(op: SelectAndScatterOp) -> None:
    check_shape("the initial value", shape_of(op.init_value), [])
    check_promotable("the initial value", element_of(op.init_value), _combined(op).element_type)


OF_SELECT_AND_SCATTER: tuple[Constraint[SelectAndScatterOp], ...] = (
    Constraint("C9", _check_select),
    Constraint("C1", lambda op: check_element("the source", element_of(op.source), element_of(op.operand))),
    Constraint("C10", lambda op: check_promotable("the source", element_of(op.source), _combined(op).element_type)),
    Constraint("C3", _check_init),
    Constraint("C4", lambda op: check_count("window_dimensions", len(op.sizes()), _rank(op))),
    Constraint("C5", lambda op: check_positive("window_dimensions", op.sizes())),
    *moving({"window_strides": ("C6", "C7")}, _rank),
    Constraint("C8", lambda op: padding_of(op.padding, _rank(op))),
    Constraint("C2", lambda op: check_shape("the source", shape_of(op.source), op.places())),
    Constraint("C11", lambda op: check_shape("the result", shape_of(op.result), shape_of(op.operand))),
    Constraint("C12", lambda op: check_element("the result", element_of(op.result), _combined(op).element_type)),
)

WINDOWS: list[type[Operation]] = [ReduceWindowOp, SelectAndScatterOp]
