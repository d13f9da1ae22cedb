"""`stablehlo.map`: a function of scalars for each place of its operands. StableHLO prints it in generic form."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .checks import check_shape, element_of, shape_of
from .constraints import Constraint, verify_constraints
from .control import check_all, returned_types
from .shapes import I64_ARRAY
from .tensors import NUMBERS


@irdl_op_definition
class MapOp(IRDLOperation):
    """The region, applied to the elements of each place."""

    name = "stablehlo.map"

    inputs = var_operand_def(NUMBERS)
    dimensions = prop_def(I64_ARRAY)
    computation = region_def("single_block")
    result = result_def(TensorType)

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        verify_constraints(self, CONSTRAINTS)


def _check_count(op: MapOp) -> None:
    if not op.inputs:
        raise VerifyException("there is no input")


def _check_shapes(op: MapOp) -> None:
    for value in op.inputs:
        check_shape("an input", shape_of(value), shape_of(op.result))


def _check_dimensions(op: MapOp) -> None:
    dimensions, rank = list(op.dimensions.get_values()), len(shape_of(op.inputs[0]))
    if dimensions != list(range(rank)):
        raise VerifyException(f"the dimensions are {dimensions}, expected {list(range(rank))}")


def _check_computation(op: MapOp) -> None:
    scalars = [TensorType(element_of(value), []) for value in op.inputs]
    check_all("the arguments of the region", op.computation.block.arg_types, scalars)
    returned = [TensorType(element_of(op.result), [])]
    check_all("the values that the region returns", returned_types(op.computation.block), returned)


CONSTRAINTS: tuple[Constraint[MapOp], ...] = (
    Constraint("C2", _check_count),
    Constraint("C1", _check_shapes),
    Constraint("C3", _check_dimensions),
    Constraint("C4", _check_computation),
)

MAPPING: list[type[Operation]] = [MapOp]
