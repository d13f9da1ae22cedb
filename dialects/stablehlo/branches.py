"""Branches and sorting. StableHLO prints these operations in the generic form."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, TensorType, i1, i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .checks import element_of, shape_of
from .control import check_all, returned_types
from .formats import I64_ATTR
from .tensors import numbers, scalar


@irdl_op_definition
class IfOp(IRDLOperation):
    """Run the branch that the predicate selects, and return its results."""

    name = "stablehlo.if"

    pred = operand_def(scalar("I1", i1))
    result = var_result_def()
    true_branch = region_def("single_block")
    false_branch = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        check_branch(self, self.true_branch.block, "C1", "C3")
        check_branch(self, self.false_branch.block, "C1", "C3")


@irdl_op_definition
class CaseOp(IRDLOperation):
    """Run the branch with the given index, or the last branch if the index is out of range, and return the branch's
    results."""

    name = "stablehlo.case"

    index = operand_def(scalar("I1", i32))
    result = var_result_def()
    branches = var_region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        if not self.branches:
            raise VerifyException("C1: there are no branches, expected at least one")
        for branch in self.branches:
            check_branch(self, branch.block, "C2", "C4")


def check_branch(op: Operation, block: Block, of_arguments: str, of_results: str) -> None:
    """Check that the branch has no arguments and returns the operation's result types.

    `of_arguments` and `of_results` are the labels of the two constraints in error messages.
    """
    check_all(f"{of_arguments}: the arguments of a branch", block.arg_types, [])
    check_all(f"{of_results}: the values that a branch returns", returned_types(block), op.result_types)


@irdl_op_definition
class SortOp(IRDLOperation):
    """Sort tensors together along one dimension, using the comparator in the region."""

    name = "stablehlo.sort"

    inputs = var_operand_def(numbers("I1"))
    dimension = opt_prop_def(I64_ATTR)
    is_stable = opt_prop_def(BoolAttr)
    outputs = var_result_def(TensorType)
    comparator = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        check_all("C2: the results", self.result_types, self.operand_types)
        rank = len(shape_of(self.inputs[0])) if self.inputs else 0
        along = -1 if self.dimension is None else self.dimension.value.data
        if not -rank <= along < rank:
            raise VerifyException(f"C4: dimension {along} is out of range for rank {rank}")
        scalars = [_scalar(value) for value in self.inputs for _ in range(2)]
        check_all("C5: the arguments of the comparator", self.comparator.block.arg_types, scalars)
        check_all(
            "C5: the values that the comparator returns", returned_types(self.comparator.block), [TensorType(i1, [])]
        )


def _scalar(value: SSAValue) -> TensorType:
    return TensorType(element_of(value), [])


BRANCHES: list[type[Operation]] = [IfOp, CaseOp, SortOp]
