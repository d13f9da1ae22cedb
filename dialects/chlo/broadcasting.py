"""CHLO operations that broadcast their operands implicitly.

    %r = chlo.broadcast_add %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %r = chlo.broadcast_add %a, %b {broadcast_dimensions = array<i64: 0>} : (tensor<2x3xf32>, tensor<2xf32>) -> …
    %r = chlo.broadcast_select %p, %a, %b : (tensor<i1>, tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>

Dimensions of extent 1 are repeated. The operand of lower rank is aligned with the last dimensions of the other operand,
as in numpy, or with the dimensions that `broadcast_dimensions` lists. Names, properties and assembly follow
`ChloOps.td`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ComplexType,
    DenseArrayBase,
    TensorType,
    UnrankedTensorType,
    i1,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    BaseAttr,
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

from ..stablehlo.attributes import ComparisonDirection, ComparisonType
from ..stablehlo.checks import (
    ElementPredicate,
    check_count,
    check_dimensions,
    check_element,
    check_ordered,
    check_shape,
    check_takes,
    element_of,
    is_any,
    is_float,
    is_integer_or_bool,
    is_number,
    is_numeric,
    shape_of,
)
from ..stablehlo.compare_select import check_comparison_type
from ..stablehlo.formats import FunctionTypeOp
from ..stablehlo.quantized_types import check_baseline, is_quantized

ANY_RANK = BaseAttr(TensorType) | BaseAttr(UnrankedTensorType)


@irdl_attr_definition
class ComparisonDirectionAttr(EnumAttribute[ComparisonDirection], SpacedOpaqueSyntaxAttribute):
    """The relation that `chlo.broadcast_compare` tests."""

    name = "chlo.comparison_direction"


@irdl_attr_definition
class ComparisonTypeAttr(EnumAttribute[ComparisonType], SpacedOpaqueSyntaxAttribute):
    """The comparison type of `chlo.broadcast_compare`: float, total order, signed or unsigned."""

    name = "chlo.comparison_type"


def aligned_shape(shape: Sequence[int], rank: int, dimensions: Sequence[int] | None) -> tuple[int, ...]:
    """Return the shape, extended to `rank` with extents of 1.

    `dimensions`: the new position of each dimension; None moves all dimensions to the end.
    """
    if len(shape) == rank:
        return tuple(shape)
    aligned = [1] * rank
    places = range(rank - len(shape), rank) if dimensions is None else dimensions
    for place, extent in zip(places, shape, strict=True):
        aligned[place] = extent
    return tuple(aligned)


def broadcast_shape(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which both shapes broadcast, aligned at their last dimensions.

    Raises:
        VerifyException: The shapes are incompatible.
    """
    rank = max(len(first), len(second))
    pairs = zip(aligned_shape(first, rank, None), aligned_shape(second, rank, None), strict=True)
    return tuple(_common_extent(a, b) for a, b in pairs)


def _common_extent(first: int, second: int) -> int:
    if first == second or second == 1:
        return first
    if first == 1 or first == DYNAMIC_INDEX:
        return second
    if second == DYNAMIC_INDEX:
        return first
    raise VerifyException(f"extents {first} and {second} cannot be broadcast to each other")


def is_unranked(op: Operation) -> bool:
    """Return whether an operand or a result has unknown rank. Such operations are not checked."""
    return any(isinstance(value.type, UnrankedTensorType) for value in (*op.operands, *op.results))


class BroadcastBinaryOp(FunctionTypeOp):
    """Combine each pair of elements of two tensors, after broadcasting them."""

    ARITY: ClassVar[int] = 2
    TAKES: ClassVar[ElementPredicate] = is_any

    lhs = operand_def(ANY_RANK)
    rhs = operand_def(ANY_RANK)
    broadcast_dimensions = opt_prop_def(DenseArrayBase.constr(i64))
    result = result_def(ANY_RANK)

    traits = traits_def(Pure())

    @property
    def dimensions(self) -> tuple[int, ...] | None:
        """The result dimension for each dimension of the lower-rank operand; None if the operand is aligned with the
        last dimensions of the result."""
        dimensions = self.broadcast_dimensions
        return None if dimensions is None else dimensions.get_values()

    def element_of_result(self) -> Attribute:
        """Return the element type that the result must have."""
        return element_of(self.lhs)

    def verify_(self) -> None:
        if is_unranked(self):
            return
        left, right = shape_of(self.lhs), shape_of(self.rhs)
        rank = max(len(left), len(right))
        # Operands of equal rank are already aligned, and StableHLO ignores the attribute.
        if self.dimensions is not None and len(left) != len(right):
            check_count("broadcast_dimensions", len(self.dimensions), min(len(left), len(right)))
            check_dimensions("broadcast_dimensions", self.dimensions, rank)
            check_ordered("broadcast_dimensions", self.dimensions)
        left, right = (aligned_shape(shape, rank, self.dimensions) for shape in (left, right))
        check_shape("the result", shape_of(self.result), broadcast_shape(left, right))
        check_takes(self, type(self).TAKES)
        # Scales and zero points of quantized operands and results may differ.
        if is_numeric(element_of(self.lhs)) or is_numeric(element_of(self.rhs)):
            check_element("the right operand", element_of(self.rhs), element_of(self.lhs))
            check_element("the result", element_of(self.result), self.element_of_result())
            return
        check_baseline("the right operand", element_of(self.rhs), element_of(self.lhs))
        if is_quantized(self.result):
            check_baseline("the result", element_of(self.result), element_of(self.lhs))


def _broadcasting(word: str, takes: ElementPredicate) -> type[Operation]:
    """Return the class of the operation `chlo.broadcast_<word>`."""

    @irdl_op_definition
    class Broadcasting(BroadcastBinaryOp):
        name = f"chlo.broadcast_{word}"
        TAKES: ClassVar[ElementPredicate] = takes

    Broadcasting.__name__ = f"Broadcast{word.title().replace('_', '')}Op"
    return Broadcasting


@irdl_op_definition
class BroadcastComplexOp(BroadcastBinaryOp):
    """Return complex numbers with the given real and imaginary parts, after broadcasting them."""

    name = "chlo.broadcast_complex"
    TAKES: ClassVar[ElementPredicate] = is_float

    def element_of_result(self) -> Attribute:
        element = element_of(self.lhs)
        assert is_float(element), "TAKES has been checked"
        return ComplexType(element)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]


@irdl_op_definition
class BroadcastCompareOp(BroadcastBinaryOp):
    """Compare two tensors elementwise, after broadcasting them. The attribute dictionary contains the direction and the
    type of the comparison."""

    name = "chlo.broadcast_compare"

    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)

    def element_of_result(self) -> Attribute:
        return i1

    def verify_(self) -> None:
        super().verify_()
        if not is_unranked(self):
            check_comparison_type(element_of(self.lhs), self.compare_type and self.compare_type.data)


@irdl_op_definition
class BroadcastSelectOp(FunctionTypeOp):
    """Select each element from one of two tensors, after broadcasting all three operands as in numpy."""

    name = "chlo.broadcast_select"
    ARITY: ClassVar[int] = 3

    pred = operand_def(ANY_RANK)
    on_true = operand_def(ANY_RANK)
    on_false = operand_def(ANY_RANK)
    result = result_def(ANY_RANK)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        if is_unranked(self):
            return
        check_element("the predicate", element_of(self.pred), i1)
        check_element("on_false", element_of(self.on_false), element_of(self.on_true))
        check_element("the result", element_of(self.result), element_of(self.on_true))
        check_shape("the result", shape_of(self.result), reduce(broadcast_shape, map(shape_of, self.operands)))


_TAKES: dict[str, ElementPredicate] = {
    **dict.fromkeys("add atan2 maximum minimum multiply".split(), is_any),
    **dict.fromkeys("divide power remainder subtract".split(), is_number),
    # Defined for all elements in ChloOps.td; StableHLO's own operations take integers only.
    **dict.fromkeys("shift_left shift_right_arithmetic shift_right_logical".split(), is_any),
    **dict.fromkeys("and or xor".split(), is_integer_or_bool),
    **dict.fromkeys("next_after polygamma zeta".split(), is_float),
}
BROADCASTING: list[type[Operation]] = [
    *(_broadcasting(word, takes) for word, takes in _TAKES.items()),
    BroadcastComplexOp,
    BroadcastCompareOp,
    BroadcastSelectOp,
]
BROADCASTING_ATTRIBUTES: list[type[Attribute]] = [ComparisonDirectionAttr, ComparisonTypeAttr]
