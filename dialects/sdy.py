"""Shardy for xDSL: the sharding operations that JAX emits, preserved unchanged.

sdy.mesh @mesh = <["data"=2]>
%1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {}]> : type
%2 = sdy.constant dense<1.0> : tensor<4xf32>

Assembly and properties are those of Shardy's `ops.td`. A constraint is not `Pure`: without uses it still shards its
operand. Nor is a constant: Shardy has its own constants so that each use keeps a separate one.
"""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Dialect, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, SymbolOpInterface

from .computations import COMPUTATIONS
from .shardings import SHARDINGS, MeshAttr, ShardingAttr
from .stablehlo.checks import check_types
from .stablehlo.creation import DenseConstantOp
from .stablehlo.formats import Properties, SameTypeOp, parse_attributes, print_attributes


@irdl_op_definition
class MeshOp(IRDLOperation):
    """A mesh of devices with named axes."""

    name = "sdy.mesh"

    sym_name = prop_def(StringAttr)
    mesh = prop_def(MeshAttr)

    traits = traits_def(SymbolOpInterface(), NoMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        parser.parse_punctuation("=")
        mesh = MeshAttr(MeshAttr.parse_parameter(parser))
        attributes = parse_attributes(parser, cls, ("sym_name", "mesh"))[1]
        return cls.create(properties={"sym_name": name, "mesh": mesh}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" = ")
        self.mesh.print_parameter(printer)
        print_attributes(printer, self, ("sym_name", "mesh"))


@irdl_op_definition
class ShardingConstraintOp(SameTypeOp):
    """The operand, with this sharding over the devices."""

    name = "sdy.sharding_constraint"

    input = operand_def()
    sharding = prop_def(ShardingAttr)
    result = result_def()

    SPELLED: ClassVar[tuple[str, ...]] = ("sharding",)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"sharding": ShardingAttr(ShardingAttr.parse_parameter(parser))}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.sharding.print_parameter(printer)

    def verify_(self) -> None:
        check_types("the result", self.result.type, self.input.type)


@irdl_op_definition
class ShardyConstantOp(DenseConstantOp):
    """A constant that is never merged with an equal one."""

    name = "sdy.constant"


def axes_of_mesh(inside: Operation, name: str) -> dict[str, int]:
    """The axis sizes of the mesh of this name in the module around an operation; empty without such a mesh."""
    top = inside.get_toplevel_object()
    if isinstance(top, ModuleOp):
        for op in top.ops:
            if isinstance(op, MeshOp) and op.sym_name.data == name:
                return op.mesh.axes()
    return {}


SDY = Dialect("sdy", [MeshOp, ShardingConstraintOp, ShardyConstantOp, *COMPUTATIONS], SHARDINGS)
