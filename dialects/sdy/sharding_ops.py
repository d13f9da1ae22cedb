"""Shardy's operations without a region: meshes, constraints on shardings, and propagation edges and barriers.

    sdy.mesh @mesh = <["data"=2]>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {}]> : type
    %2 = sdy.constant dense<1.0> : tensor<4xf32>
    %3 = sdy.propagation_barrier %2 allowed_direction=BACKWARD : tensor<4xf32>
    sdy.sharding_group %3 group_id=21 : tensor<4xf32>

A constraint is not `Pure`, because it shards its operand even if its result has no uses. Shardy's constants are not
`Pure` either: their purpose is that each use has a constant of its own, which is never merged with another.
"""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, TensorType, i32, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ..stablehlo.checks import check_static, check_types
from ..stablehlo.creation import DenseConstantOp
from ..stablehlo.formats import I32_ATTR, I64_ATTR, Properties, SameTypeOp, parse_attributes, print_attributes
from .computations import ComputationOp
from .sharding_checks import check_sharding, check_unreduced
from .sharding_lookup import is_in_module, mesh_of, sharding_of
from .sharding_text import parse_mesh, parse_sharding
from .shardings import MeshAttr, ShardingAttr


@irdl_op_definition
class MeshOp(IRDLOperation):
    """Define a mesh of devices with named axes."""

    name = "sdy.mesh"

    sym_name = prop_def(StringAttr)
    mesh = prop_def(MeshAttr)

    traits = traits_def(SymbolOpInterface(), NoMemoryEffect())

    def verify_(self) -> None:
        parse_mesh(self.mesh.data)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        parser.parse_punctuation("=")
        mesh = MeshAttr.parse_short_or_full(parser)
        attributes = parse_attributes(parser, cls, ("sym_name", "mesh"))[1]
        return cls.create(properties={"sym_name": name, "mesh": mesh}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" = ")
        self.mesh.print_parameter(printer)
        print_attributes(printer, self, ("sym_name", "mesh"))


class ShardedCopyOp(SameTypeOp):
    """Base class of operations that return their operand with a sharding."""

    input = operand_def()
    sharding = prop_def(ShardingAttr)
    result = result_def()

    SPELLED: ClassVar[tuple[str, ...]] = ("sharding",)
    NEEDS_MESH: ClassVar[bool] = True
    """Whether the module must define the mesh of the sharding."""

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"sharding": ShardingAttr.parse_short_or_full(parser)}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.sharding.print_parameter(printer)

    def verify_(self) -> None:
        check_types("the result", self.result.type, self.input.type)
        if not is_in_module(self):
            return
        sharding = parse_sharding(self.sharding.data)
        mesh = mesh_of(self, sharding.mesh)
        if mesh is None and not type(self).NEEDS_MESH:
            return
        check_sharding("sharding", sharding, self.result.type, mesh, self)
        assert mesh is not None, "checked: the mesh is known"
        source = sharding_of(_before_barriers(self.input))
        if source is not None and mesh_of(self, source.mesh) == mesh:
            check_unreduced(source, sharding, mesh, "sum", source.reduction)


def _before_barriers(value: SSAValue) -> SSAValue:
    """Return the value that enters the chain of propagation barriers; the value itself if there is no such chain."""
    while isinstance(value.owner, PropagationBarrierOp):
        value = value.owner.input
    return value


@irdl_op_definition
class ShardingConstraintOp(ShardedCopyOp):
    """Return the operand, constrained to a sharding."""

    name = "sdy.sharding_constraint"

    # Programs that are extracted from larger ones often lack their meshes.
    NEEDS_MESH: ClassVar[bool] = False


@irdl_op_definition
class ReshardOp(ShardedCopyOp):
    """Return the operand with a different sharding. The partitioner lowers this operation to collectives."""

    name = "sdy.reshard"

    traits = traits_def(Pure())


DIRECTIONS = ("NONE", "FORWARD", "BACKWARD", "BOTH")


@irdl_op_definition
class PropagationBarrierOp(SameTypeOp):
    """Return the operand, and let shardings propagate through it in the given direction only."""

    name = "sdy.propagation_barrier"

    input = operand_def(TensorType)
    allowed_direction = prop_def(I32_ATTR)
    result = result_def(TensorType)

    SPELLED: ClassVar[tuple[str, ...]] = ("allowed_direction",)
    traits = traits_def(Pure())

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_keyword("allowed_direction")
        parser.parse_punctuation("=")
        start = parser.pos
        word = parser.parse_identifier()
        if word not in DIRECTIONS:
            parser.raise_error(f"expected a direction, one of {', '.join(DIRECTIONS)}", start)
        return {"allowed_direction": IntegerAttr(DIRECTIONS.index(word), i32)}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f" allowed_direction={DIRECTIONS[self.allowed_direction.value.data]}")

    def verify_(self) -> None:
        check_types("the result", self.result.type, self.input.type)
        number = self.allowed_direction.value.data
        if not 0 <= number < len(DIRECTIONS):
            raise VerifyException(f"allowed_direction is {number}, expected 0 (NONE), 1 (FORWARD) or 2 (BACKWARD)")
        if DIRECTIONS[number] == "BOTH":
            raise VerifyException("cannot specify `BOTH` as the direction: the barrier would have no effect")


@irdl_op_definition
class ShardingGroupOp(IRDLOperation):
    """Put the operand into the sharding group `group_id`, whose values all have the same sharding."""

    name = "sdy.sharding_group"

    input = operand_def(TensorType)
    group_id = prop_def(I64_ATTR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("group_id")
        parser.parse_punctuation("=")
        group = IntegerAttr(parser.parse_integer(allow_boolean=False), i64)
        attributes = parse_attributes(parser, cls, ("group_id",))[1]
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        return cls.create(operands=[value], properties={"group_id": group}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.input)
        printer.print_string(f" group_id={self.group_id.value.data}")
        print_attributes(printer, self, ("group_id",))
        printer.print_string(" : ")
        printer.print_attribute(self.input.type)


class EdgeOp(SameTypeOp):
    """Base class of edges along which shardings are propagated. The operand owns the edge and must have no other
    user."""

    input = operand_def(TensorType)
    result = result_def(TensorType)

    def verify_(self) -> None:
        check_types("the result", self.result.type, self.input.type)
        check_static("the result", self.result)
        if not self.input.has_one_use():
            raise VerifyException("the operand of an edge must have no other users")
        self.verify_owner()

    def verify_owner(self) -> None:
        """Raise `VerifyException` if the operand cannot own an edge."""


@irdl_op_definition
class DataFlowEdgeOp(EdgeOp):
    """Declare an edge of an operation with regions: between its operands, its results and the arguments of its
    regions."""

    name = "sdy.data_flow_edge"

    sharding = opt_prop_def(ShardingAttr)

    SPELLED: ClassVar[tuple[str, ...]] = ("sharding",)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        if parser.parse_optional_keyword("sharding") is None:
            return {}
        parser.parse_punctuation("=")
        return {"sharding": ShardingAttr.parse_short_or_full(parser)}

    def print_own(self, printer: Printer) -> None:
        if self.sharding is not None:
            printer.print_string(" sharding=")
            self.sharding.print_parameter(printer)

    def verify_owner(self) -> None:
        owner = self.input.owner
        if isinstance(owner, Operation) and owner.name.startswith("sdy.") and not isinstance(owner, ComputationOp):
            raise VerifyException(f"the operand is a result of {owner.name}, and that operation cannot own an edge")
        if self.sharding is not None and is_in_module(self):
            sharding = parse_sharding(self.sharding.data)
            check_sharding("sharding", sharding, self.result.type, mesh_of(self, sharding.mesh), self)


@irdl_op_definition
class FuncDataFlowEdgeOp(EdgeOp):
    """Declare an edge between an argument of a function and the operands of its calls, or between a result and the
    results of its calls."""

    name = "sdy.func_data_flow_edge"

    def verify_owner(self) -> None:
        owner = self.input.owner
        op = owner.parent_op() if isinstance(owner, Block) else owner
        expected = "func.func" if isinstance(owner, Block) else "func.call"
        if op is not None and op.name != expected:
            raise VerifyException("the operand must be an argument of a function or a result of a call")


@irdl_op_definition
class ShardyConstantOp(DenseConstantOp):
    """Return a constant that is never merged with an equal one."""

    name = "sdy.constant"


def axes_of_mesh(inside: Operation, name: str) -> dict[str, int]:
    """Return the axis sizes of the mesh `name` in the module around `inside`; empty if there is no such mesh."""
    top = inside.get_toplevel_object()
    if isinstance(top, ModuleOp):
        for op in top.ops:
            if isinstance(op, MeshOp) and op.sym_name.data == name:
                return op.mesh.axes()
    return {}


ANNOTATIONS: list[type[Operation]] = [
    MeshOp,
    ShardingConstraintOp,
    ReshardOp,
    PropagationBarrierOp,
    ShardingGroupOp,
    DataFlowEdgeOp,
    FuncDataFlowEdgeOp,
    ShardyConstantOp,
]
