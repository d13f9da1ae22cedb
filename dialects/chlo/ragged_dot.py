"""`chlo.ragged_dot`: matrix products over groups of rows, of contracted elements, or of batches.

    %r = "chlo.ragged_dot"(%lhs, %rhs, %group_sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<…>}> : …

The ragged dimension of the left operand, of extent `m`, `k` or `b`, is divided into `g` groups:

    rows            [b, m, k], [g, b, k, n], [b, g] -> [b, m, n]      each row times the right matrix of its group
    contracted      [b, m, k], [b, k, n],    [b, g] -> [g, b, m, n]   one product per group, over its elements only
    batches         [b, m, k], [b, k, n],    [g]    -> [b, m, n]      the batched product; groups have no effect

Group sizes of shape `[g]` apply to every index of the dimensions before the ragged dimension. The operation has no
custom assembly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..stablehlo.attributes import Dimensions, Precision, RecordAttribute
from ..stablehlo.checks import check_count, check_dimensions, check_shape, element_of, is_integer, shape_of


@irdl_attr_definition
class ChloPrecisionAttr(EnumAttribute[Precision], SpacedOpaqueSyntaxAttribute):
    """The precision of an operand of `chlo.ragged_dot`: `#chlo<precision DEFAULT>`"""

    name = "chlo.precision"


@dataclass(frozen=True)
class RaggedDotDimensions:
    """The roles of the dimensions of both operands of a ragged dot."""

    lhs_batching_dimensions: Dimensions = ()
    rhs_batching_dimensions: Dimensions = ()
    lhs_contracting_dimensions: Dimensions = ()
    rhs_contracting_dimensions: Dimensions = ()
    lhs_ragged_dimensions: Dimensions = ()
    rhs_group_dimensions: Dimensions = ()


@irdl_attr_definition
class RaggedDotAttr(RecordAttribute[RaggedDotDimensions]):
    """The dimension numbers of a ragged dot, `#chlo.ragged_dot<…>`."""

    name = "chlo.ragged_dot"
    RECORD: ClassVar[type] = RaggedDotDimensions


@irdl_op_definition
class RaggedDotOp(IRDLOperation):
    """Multiply matrices in groups, into which a dimension of the left operand is divided."""

    name = "chlo.ragged_dot"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    group_sizes = operand_def(TensorType)
    ragged_dot_dimension_numbers = prop_def(RaggedDotAttr)
    precision_config = opt_prop_def(ArrayAttr[ChloPrecisionAttr])
    result = result_def(TensorType)

    traits = traits_def(Pure())

    @property
    def numbers(self) -> RaggedDotDimensions:
        return self.ragged_dot_dimension_numbers.data

    @property
    def ragged_dimension(self) -> int:
        """The index of the ragged dimension of the left operand."""
        return self.numbers.lhs_ragged_dimensions[0]

    def free_dimensions(self) -> tuple[list[int], list[int]]:
        """Return the dimensions of the operands that are neither batching nor contracting nor group dimensions."""
        numbers = self.numbers
        left = (*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions)
        right = (*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions, *numbers.rhs_group_dimensions)
        return (
            [dimension for dimension in range(len(shape_of(self.lhs))) if dimension not in left],
            [dimension for dimension in range(len(shape_of(self.rhs))) if dimension not in right],
        )

    def group_dimensions(self) -> list[int]:
        """Return the dimensions of the left operand along which the group sizes may differ."""
        numbers, ragged = self.numbers, self.ragged_dimension
        batching = list(numbers.lhs_batching_dimensions)
        if ragged in batching:
            return batching[: batching.index(ragged)]
        contracting = numbers.lhs_contracting_dimensions
        if ragged in contracting:
            return [*batching, *contracting[: contracting.index(ragged)]]
        return [*batching, *(dimension for dimension in self.free_dimensions()[0] if dimension < ragged)]

    def verify_(self) -> None:
        numbers = self.numbers
        left, right, sizes = shape_of(self.lhs), shape_of(self.rhs), shape_of(self.group_sizes)
        if not is_integer(element_of(self.group_sizes)):
            raise VerifyException(f"group_sizes has elements of type {element_of(self.group_sizes)}, expected integers")
        if self.precision_config is not None and len(self.precision_config) > 2:
            raise VerifyException(f"precision_config has {len(self.precision_config)} elements, expected at most two")
        lhs_paired = (*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions)
        rhs_paired = (*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions)
        check_count(
            "rhs_batching_dimensions", len(numbers.rhs_batching_dimensions), len(numbers.lhs_batching_dimensions)
        )
        check_count("rhs_contracting_dimensions", len(rhs_paired), len(lhs_paired))
        check_dimensions("lhs batching and contracting dimensions", lhs_paired, len(left))
        check_dimensions(
            "rhs batching, contracting and group dimensions", (*rhs_paired, *numbers.rhs_group_dimensions), len(right)
        )
        check_shape(
            "the batching and contracting part of rhs",
            [right[dimension] for dimension in rhs_paired],
            [left[dimension] for dimension in lhs_paired],
        )
        check_count("lhs_ragged_dimensions", len(numbers.lhs_ragged_dimensions), 1)
        check_dimensions("lhs_ragged_dimensions", numbers.lhs_ragged_dimensions, len(left))
        if not sizes:
            raise VerifyException("group_sizes has rank 0, expected one size for each group in its last dimension")
        groups = sizes[-1]
        if len(sizes) != 1:
            check_shape("group_sizes", sizes, [*(left[dimension] for dimension in self.group_dimensions()), groups])
        is_free = self.ragged_dimension in self.free_dimensions()[0]
        check_count("rhs_group_dimensions", len(numbers.rhs_group_dimensions), int(is_free))
        if is_free:
            check_shape("the group dimension of rhs", [right[numbers.rhs_group_dimensions[0]]], [groups])
        check_shape("the result", shape_of(self.result), self._expected_shape(groups))

    def _expected_shape(self, groups: int) -> list[int]:
        numbers = self.numbers
        left, right = shape_of(self.lhs), shape_of(self.rhs)
        rows, columns = self.free_dimensions()
        added = [groups] if self.ragged_dimension in numbers.lhs_contracting_dimensions else []
        batches = [left[dimension] for dimension in numbers.lhs_batching_dimensions]
        return [*added, *batches, *(left[d] for d in rows), *(right[d] for d in columns)]


RAGGED_DOT: list[type[Operation]] = [RaggedDotOp]
RAGGED_DOT_ATTRIBUTES: list[type[Attribute]] = [RaggedDotAttr, ChloPrecisionAttr]
