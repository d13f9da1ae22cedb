"""Shardy's collectives, which change the distribution of a value over the devices.

    %1 = sdy.all_gather [{}, {"x"}] %0 out_sharding=<@mesh, [{"y"}, {}]> : tensor<16x8xf32>
    %1 = sdy.all_to_all [{"x"}: 0->1] %0 out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x8xf32>
    %1 = sdy.all_reduce max {"x"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<16x8xf32>

The operand and the result have the type of the whole value. The operand's sharding and the axes determine the result's
sharding, which `out_sharding` repeats. Assembly, properties and constraints follow Shardy's `ops.td` and
`verifiers.cc`. Shardy declares none of these operations `Pure`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Self

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute, Block, Data, OpaqueSyntaxAttribute, Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..stablehlo.checks import check_types
from ..stablehlo.formats import (
    I32_ATTR,
    Properties,
    parse_attributes,
    parse_operands,
    print_attributes,
)
from .axes import Axes, Dimension, Mesh, Sharding, axes_text, gather_axes, merge_axes, sort_axes
from .sharding_checks import check_axis_lists, check_order, check_sharding, check_unreduced
from .sharding_lookup import is_in_module, mesh_of, sharding_of
from .sharding_text import parse_axis_list, parse_sharding
from .shardings import ShardingAttr


@irdl_attr_definition
class AxisListAttr(Data[Axes], OpaqueSyntaxAttribute):
    """A list of axes: `#sdy<axis_ref_list{"x", "y"}>`"""

    name = "sdy.axis_ref_list"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Axes:
        return parse_axis_list(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(axes_text(self.data))


@irdl_attr_definition
class AxisListsAttr(Data[tuple[Axes, ...]], OpaqueSyntaxAttribute):
    """A list of axes for each dimension: `#sdy<list_of_axis_ref_lists[{}, {"x"}]>`"""

    name = "sdy.list_of_axis_ref_lists"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Axes, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_axis_list(parser)))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"[{', '.join(map(axes_text, self.data))}]")


@dataclass(frozen=True)
class Move:
    """Axes that an all-to-all moves from the end of one dimension to the end of another."""

    axes: Axes
    source: int
    target: int

    def __str__(self) -> str:
        return f"{axes_text(self.axes)}: {self.source}->{self.target}"


def _parse_move(parser: AttrParser) -> Move:
    axes = parse_axis_list(parser)
    parser.parse_punctuation(":")
    source = parser.parse_integer(allow_boolean=False)
    parser.parse_punctuation("->")
    return Move(axes, source, parser.parse_integer(allow_boolean=False))


@irdl_attr_definition
class MovesAttr(Data[tuple[Move, ...]], OpaqueSyntaxAttribute):
    """The moves of an all-to-all: `#sdy<all_to_all_param_list[{"x"}: 0->1]>`"""

    name = "sdy.all_to_all_param_list"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Move, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_move(parser)))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"[{', '.join(map(str, self.data))}]")


REDUCTIONS = ("sum", "max", "min")


class CollectiveOp(IRDLOperation):
    """Base class of Shardy's collectives, printed as `name axes %operand out_sharding=<…> : type`."""

    AXES: ClassVar[str] = ""
    """The name of the property that contains the axes; empty if there is none."""
    AXES_TYPE: ClassVar[type[AxisListAttr | AxisListsAttr | MovesAttr]] = AxisListsAttr
    MAY_LACK_SHARDING: ClassVar[bool] = False
    """Whether an operand without a sharding counts as replicated."""
    MAY_CHANGE_MESH: ClassVar[bool] = False

    tensor = operand_def()
    out_sharding = prop_def(ShardingAttr)
    result = result_def()

    def verify_(self) -> None:
        check_types("the result", self.result.type, self.tensor.type)
        if not is_in_module(self):
            return
        result = parse_sharding(self.out_sharding.data)
        mesh = mesh_of(self, result.mesh)
        check_sharding("out_sharding", result, self.result.type, mesh, self)
        assert mesh is not None, "checked: the mesh is known"
        if (operand := self._operand_sharding(result)) is None:
            return
        if not type(self).MAY_CHANGE_MESH and mesh_of(self, operand.mesh) not in (mesh, None):
            raise VerifyException(f"the result has the mesh {result.mesh}, expected the operand's mesh, {operand.mesh}")
        if len(operand.dimensions) != len(result.dimensions):
            raise VerifyException(
                f"the result sharding has rank {len(result.dimensions)}, "
                f"but the operand sharding has rank {len(operand.dimensions)}"
            )
        self.check_axes(operand, result, mesh)

    def _operand_sharding(self, result: Sharding) -> Sharding | None:
        """Return the sharding of the operand; None for an argument of a region, whose sharding may be attached
        elsewhere."""
        if (sharding := sharding_of(self.tensor)) is not None:
            return sharding
        if type(self).MAY_LACK_SHARDING:
            return Sharding(result.mesh, tuple(Dimension() for _ in result.dimensions))
        owner = self.tensor.owner
        parent = owner.parent_op() if isinstance(owner, Block) else None
        if parent is not None and parent.name != "func.func":
            return None
        raise VerifyException("the operand of a collective must have a sharding")

    @abstractmethod
    def check_axes(self, operand: Sharding, result: Sharding, mesh: Mesh) -> None:
        """Raise `VerifyException` unless the sharding of the result follows from the operand's sharding and the
        axes."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties = cls.parse_reduction(parser)
        if cls.AXES:
            properties[cls.AXES] = cls.AXES_TYPE(cls.AXES_TYPE.parse_parameter(parser))  # pyright: ignore
        start = parser.pos
        operands = parse_operands(parser, 1)
        parser.parse_keyword("out_sharding")
        parser.parse_punctuation("=")
        properties["out_sharding"] = ShardingAttr.parse_short_or_full(parser)
        others, attributes = parse_attributes(parser, cls, tuple(cls.get_irdl_definition().properties))
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.create(
            operands=parser.resolve_operands(operands, [type_], start),
            result_types=[type_],
            properties=properties | others,
            attributes=attributes,
        )

    @classmethod
    def parse_reduction(cls, parser: Parser) -> Properties:
        """Parse the reduction kind before the axes. Parse nothing for a collective without a reduction."""
        return {}

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.print_reduction(printer)
        if type(self).AXES:
            axes = self.properties[type(self).AXES]
            assert isinstance(axes, AxisListAttr | AxisListsAttr | MovesAttr)
            axes.print_parameter(printer)
            printer.print_string(" ")
        printer.print_operand(self.tensor)
        printer.print_string(" out_sharding=")
        self.out_sharding.print_parameter(printer)
        print_attributes(printer, self, tuple(self.properties))
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def print_reduction(self, printer: Printer) -> None:
        """Print the reduction kind before the axes. Print nothing for a collective without a reduction."""


def _check_dimension(index: int, actual: Axes, expected: Axes) -> None:
    if actual != expected:
        raise VerifyException(
            f"dimension {index} of the result is sharded along {axes_text(actual)}, expected {axes_text(expected)}"
        )


class AxesPerDimensionOp(CollectiveOp):
    """Base class of collectives with a list of axes for each dimension."""

    def check_axes(self, operand: Sharding, result: Sharding, mesh: Mesh) -> None:
        lists = self.properties[type(self).AXES]
        assert isinstance(lists, AxisListsAttr), "the definition of the operation requires lists"
        check_axis_lists(type(self).AXES, lists.data, mesh)
        if len(lists.data) != len(result.dimensions):
            raise VerifyException(
                f"the result sharding has rank {len(result.dimensions)}, "
                f"but the number of lists of axes is {len(lists.data)}"
            )
        for index, axes in enumerate(lists.data):
            expected = self.apply_axes(operand.dimensions[index].axes, axes, mesh)
            _check_dimension(index, result.dimensions[index].axes, expected)

    @abstractmethod
    def apply_axes(self, operand: Axes, axes: Axes, mesh: Mesh) -> Axes:
        """Return the axes that divide a dimension of the result.

        `operand`: the axes that divide the dimension of the operand. `axes`: the axes of the collective.
        """


class GatheringOp(AxesPerDimensionOp):
    def apply_axes(self, operand: Axes, axes: Axes, mesh: Mesh) -> Axes:
        return gather_axes(type(self).AXES, operand, axes, mesh)


class SlicingOp(AxesPerDimensionOp):
    def apply_axes(self, operand: Axes, axes: Axes, mesh: Mesh) -> Axes:
        return merge_axes((*operand, *axes), mesh)


@irdl_op_definition
class AllGatherOp(GatheringOp):
    """Gather the shards along axes, so that each device holds a larger part of the value."""

    name = "sdy.all_gather"
    AXES: ClassVar[str] = "gathering_axes"

    gathering_axes = prop_def(AxisListsAttr)


@irdl_op_definition
class AllSliceOp(SlicingOp):
    """Slice a value along axes, so that each device keeps only its slice."""

    name = "sdy.all_slice"
    AXES: ClassVar[str] = "slicing_axes"
    MAY_LACK_SHARDING: ClassVar[bool] = True

    slicing_axes = prop_def(AxisListsAttr)


@irdl_op_definition
class AllToAllOp(CollectiveOp):
    """Move axes from some dimensions to others."""

    name = "sdy.all_to_all"
    AXES: ClassVar[str] = "params"
    AXES_TYPE: ClassVar[type[AxisListAttr | AxisListsAttr | MovesAttr]] = MovesAttr

    params = prop_def(MovesAttr)

    def check_axes(self, operand: Sharding, result: Sharding, mesh: Mesh) -> None:
        moves = self.params.data
        if not moves:
            raise VerifyException("the list of moves must not be empty")
        check_axis_lists("params", [move.axes for move in moves], mesh)
        ends = [dimension for move in moves for dimension in (move.source, move.target)]
        rank = len(result.dimensions)
        for dimension in ends:
            if not 0 <= dimension < rank:
                raise VerifyException(f"dimension {dimension} is out of range [0, {rank})")
        if len(set(ends)) != len(ends):
            raise VerifyException(f"the source and target dimensions {ends} must be distinct")
        sources = [move.source for move in moves]
        if sources != sorted(sources):
            raise VerifyException(f"the source dimensions {sources} must be in ascending order")
        expected = [dimension.axes for dimension in operand.dimensions]
        for move in moves:
            expected[move.source] = gather_axes("all-to-all", expected[move.source], move.axes, mesh)
            expected[move.target] = merge_axes((*expected[move.target], *move.axes), mesh)
        for index, axes in enumerate(expected):
            _check_dimension(index, result.dimensions[index].axes, axes)


@irdl_op_definition
class CollectivePermuteOp(CollectiveOp):
    """Redistribute the shards, so that each dimension is sharded over different axes with the same total size."""

    name = "sdy.collective_permute"
    MAY_CHANGE_MESH: ClassVar[bool] = True

    def check_axes(self, operand: Sharding, result: Sharding, mesh: Mesh) -> None:
        other = mesh_of(self, operand.mesh)
        if other is None or list(other.sizes.items()) != list(mesh.sizes.items()):
            raise VerifyException(f"the meshes {operand.mesh} and {result.mesh} must have the same axes")
        if operand.mesh != result.mesh and other.devices == mesh.devices:
            raise VerifyException(
                f"the meshes {operand.mesh} and {result.mesh} differ only in name: use the same mesh for both shardings"
            )
        for index, (before, after) in enumerate(zip(operand.dimensions, result.dimensions, strict=True)):
            sizes = [prod(axis.length(mesh) for axis in dimension.axes) for dimension in (before, after)]
            if sizes[0] != sizes[1]:
                raise VerifyException(
                    f"dimension {index} of the result is divided into {sizes[1]} shards, expected {sizes[0]}, "
                    "as in the operand"
                )


class ReducingOp(CollectiveOp):
    """Base class of collectives that combine the values of devices: by addition, unless another reduction is given."""

    reduction_op = opt_prop_def(I32_ATTR)
    MAY_LACK_SHARDING: ClassVar[bool] = True

    @property
    def reduction(self) -> str:
        return "sum" if self.reduction_op is None else REDUCTIONS[self.reduction_op.value.data]

    def reduced_axes(self) -> Axes:
        """Return the axes along which values are combined."""
        axes = self.properties[type(self).AXES]
        if isinstance(axes, AxisListAttr):
            return axes.data
        assert isinstance(axes, AxisListsAttr), "the definition of the operation requires axes"
        return tuple(axis for dimension in axes.data for axis in dimension)

    def verify_(self) -> None:
        if self.reduction_op is not None and not 0 <= self.reduction_op.value.data < len(REDUCTIONS):
            raise VerifyException(
                f"reduction_op is {self.reduction_op.value.data}, expected 0 (sum), 1 (max) or 2 (min)"
            )
        super().verify_()

    @classmethod
    def parse_reduction(cls, parser: Parser) -> Properties:
        for number, word in enumerate(REDUCTIONS):
            if parser.parse_optional_keyword(word) is not None:
                return {"reduction_op": IntegerAttr(number, i32)}
        return {}

    def print_reduction(self, printer: Printer) -> None:
        if self.reduction_op is not None:
            printer.print_string(f"{self.reduction} ")


@irdl_op_definition
class AllReduceOp(ReducingOp):
    """Combine the values that the devices along the given mesh axes hold."""

    name = "sdy.all_reduce"
    AXES: ClassVar[str] = "reduction_axes"
    AXES_TYPE: ClassVar[type[AxisListAttr | AxisListsAttr | MovesAttr]] = AxisListAttr

    reduction_axes = prop_def(AxisListAttr)

    def check_axes(self, operand: Sharding, result: Sharding, mesh: Mesh) -> None:
        pairs = zip(operand.dimensions, result.dimensions, strict=True)
        if any(before.axes != after.axes for before, after in pairs):
            raise VerifyException("the dimensions of the operand and the result must be sharded along the same axes")
        axes = self.reduction_axes.data
        check_axis_lists("reduction_axes", [axes], mesh)
        check_order("reduction", axes, mesh)
        divided = [axis for dimension in operand.dimensions for axis in dimension.axes]
        _check_disjoint(
            "reduction", axes, (*divided, *operand.replicated), mesh, "operand dimension sharding or replicated axes"
        )
        _check_disjoint("reduction", axes, result.unreduced, mesh, "result unreduced axes")
        check_unreduced(operand, result, mesh, None, self.reduction)


def _check_disjoint(subject: str, axes: Axes, others: Axes, mesh: Mesh, name: str) -> None:
    for axis in axes:
        if any(axis.overlaps(other, mesh) for other in others):
            raise VerifyException(f"{subject} axis {axis} overlaps with {name}")


@irdl_op_definition
class ReduceScatterOp(ReducingOp, SlicingOp):
    """Combine the values that the devices along the given mesh axes hold, and slice the result along these axes."""

    name = "sdy.reduce_scatter"
    AXES: ClassVar[str] = "reduce_scatter_axes"

    reduce_scatter_axes = prop_def(AxisListsAttr)

    def check_axes(self, operand: Sharding, result: Sharding, mesh: Mesh) -> None:
        check_unreduced(operand, result, mesh, None, self.reduction)
        super().check_axes(operand, result, mesh)


def _check_added_unreduced(operand: Sharding, result: Sharding, axes: Axes, mesh: Mesh) -> None:
    if result.reduction != "sum":
        raise VerifyException(f"the reduction of out_sharding is '{result.reduction}', expected 'sum'")
    expected = sort_axes((*operand.unreduced, *axes), mesh)
    if expected != result.unreduced:
        raise VerifyException(
            f"the unreduced axes of the result are {axes_text(result.unreduced)}, expected {axes_text(expected)}, "
            "which are the unreduced axes of the operand and the axes of the operation"
        )


@irdl_op_definition
class ShardedToUnreducedOp(GatheringOp):
    """Convert axes that divide the value to unreduced axes: each device pads its part of the value with zeros."""

    name = "sdy.sharded_to_unreduced"
    AXES: ClassVar[str] = "axes"

    axes = prop_def(AxisListsAttr)

    def check_axes(self, operand: Sharding, result: Sharding, mesh: Mesh) -> None:
        super().check_axes(operand, result, mesh)
        added = tuple(axis for axes in self.axes.data for axis in axes)
        _check_added_unreduced(operand, result, added, mesh)


@irdl_op_definition
class ReplicatedToUnreducedOp(CollectiveOp):
    """Convert replicated axes to unreduced axes: along these axes, one device retains the value and all others
    contribute zeros."""

    name = "sdy.replicated_to_unreduced"
    AXES: ClassVar[str] = "axes"
    AXES_TYPE: ClassVar[type[AxisListAttr | AxisListsAttr | MovesAttr]] = AxisListAttr

    axes = prop_def(AxisListAttr)

    def check_axes(self, operand: Sharding, result: Sharding, mesh: Mesh) -> None:
        if operand.dimensions != result.dimensions:
            raise VerifyException("the dimensions of the operand and the result must have the same shardings")
        axes = self.axes.data
        if not axes:
            raise VerifyException("the list of axes must not be empty")
        check_axis_lists("axes", [axes], mesh)
        check_order("r2u", axes, mesh)
        divided = tuple(axis for dimension in operand.dimensions for axis in dimension.axes)
        _check_disjoint("r2u", axes, divided, mesh, "operand dimension sharding")
        _check_disjoint("r2u", axes, operand.unreduced, mesh, "operand unreduced axes")
        _check_added_unreduced(operand, result, axes, mesh)


COLLECTIVES: list[type[Operation]] = [
    AllGatherOp,
    AllSliceOp,
    AllToAllOp,
    CollectivePermuteOp,
    AllReduceOp,
    ReduceScatterOp,
    ShardedToUnreducedOp,
    ReplicatedToUnreducedOp,
]
COLLECTIVE_ATTRIBUTES: list[type[Attribute]] = [AxisListAttr, AxisListsAttr, MovesAttr]
