"""Shardy's operations with a region. The region cannot use values from outside.

    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"}
        (%y: tensor<2xf32>) { … sdy.return %z : tensor<2xf32> } : (tensor<4xf32>) -> tensor<4xf32>
    %0 = sdy.named_computation<"f">(%x) (%y: tensor<4xf32>) { … } : (tensor<4xf32>) -> tensor<4xf32>

JAX lowers `shard_map` over more than one device to `sdy.manual_computation`. The region runs on each device, on the
device's shards of the operands. The operation has the effects of its region, but declares no memory effects to xDSL, so
xDSL's passes assume that it may have any effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Self

from xdsl.dialects.builtin import DYNAMIC_INDEX, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_tensor
from ..stablehlo.checks import check_count
from ..stablehlo.control import check_all
from ..stablehlo.formats import (
    Properties,
    parse_all_operands,
    parse_attributes,
    parse_located_argument,
    parse_type_list,
    print_attributes,
    print_function_type,
    print_operands,
)
from .sharding_checks import check_divisible, check_sharding
from .sharding_lookup import enclosing_manual_axes, is_in_module, mesh_of
from .sharding_text import parse_sharding
from .shardings import ManualAxesAttr, ShardingPerValueAttr


@irdl_op_definition
class ShardyReturnOp(IRDLOperation):
    """Terminate a computation's region, and return values from it."""

    name = "sdy.return"

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        _, attributes = parse_attributes(parser, cls)
        start = parser.pos
        operands = parse_all_operands(parser)
        types = parse_type_list(parser) if operands else []
        return cls.create(operands=parser.resolve_operands(operands, types, start), attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_attributes(printer, self)
        print_operands(printer, self.operands)
        if self.operands:
            printer.print_string(" : ")
            printer.print_list(self.operand_types, printer.print_attribute)


class ComputationOp(IRDLOperation):
    """Base class of operations with a region that takes the operands and returns the results, or per-device shards of
    them."""

    inputs = var_operand_def()
    outputs = var_result_def()
    in_shardings = opt_prop_def(ShardingPerValueAttr)
    out_shardings = opt_prop_def(ShardingPerValueAttr)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove())

    def returned_types(self) -> Sequence[Attribute]:
        """Return the types that the region returns."""
        last = self.body.block.last_op
        if not isinstance(last, ShardyReturnOp):
            raise VerifyException("expected the region to end with sdy.return")
        return last.operand_types

    def verify_(self) -> None:
        for name, shardings, values in (
            ("in_shardings", self.in_shardings, self.inputs),
            ("out_shardings", self.out_shardings, self.outputs),
        ):
            if shardings is not None:
                check_count(name, len(shardings.data), len(values))
        self.verify_body()
        for name, shardings, types in (
            ("in_shardings", self.in_shardings, self.operand_types),
            ("out_shardings", self.out_shardings, self.result_types),
        ):
            if shardings is not None:
                self._verify_shardings(name, shardings, types)

    def _verify_shardings(self, name: str, shardings: ShardingPerValueAttr, types: Sequence[Attribute]) -> None:
        """Check each sharding whose mesh the module defines."""
        for index, (text, type_) in enumerate(zip(shardings.data, types, strict=True)):
            sharding = parse_sharding(text)
            mesh = mesh_of(self, sharding.mesh) if is_in_module(self) else None
            if mesh is not None:
                check_sharding(f"{name} {index}", sharding, type_, mesh, self)

    def verify_body(self) -> None:
        """Check that the arguments have the types of the operands, and the returned values the types of the results."""
        check_all("the arguments of the region", self.body.block.arg_types, self.operand_types)
        check_all("the values that the region returns", self.returned_types(), self.result_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties = cls.parse_name(parser)
        start = parser.pos
        with parser.in_parens():
            operands = parse_all_operands(parser)
        properties |= cls.parse_shardings(parser)
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_located_argument(parser))
        body = parser.parse_region(arguments)
        _, attributes = parse_attributes(parser, cls, tuple(cls.get_irdl_definition().properties))
        parser.parse_punctuation(":")
        types = parser.parse_function_type()
        return cls.create(
            operands=parser.resolve_operands(operands, types.inputs.data, start),
            result_types=types.outputs.data,
            properties=properties,
            attributes=attributes,
            regions=[body],
        )

    @classmethod
    def parse_name(cls, parser: Parser) -> Properties:
        """Parse the part of the custom form before the operands."""
        return {}

    @classmethod
    def parse_shardings(cls, parser: Parser) -> Properties:
        """Parse the optional `in_shardings=…` and `out_shardings=…` between the operands and the region."""
        properties: Properties = {}
        for name in ("in_shardings", "out_shardings"):
            if parser.parse_optional_keyword(name) is not None:
                parser.parse_punctuation("=")
                properties[name] = ShardingPerValueAttr(ShardingPerValueAttr.parse_list(parser))
        return properties

    def print(self, printer: Printer) -> None:
        self.print_name(printer)
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_operand)
        self.print_shardings(printer)
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        print_attributes(printer, self, tuple(self.properties))
        printer.print_string(" : ")
        print_function_type(printer, self)

    def print_name(self, printer: Printer) -> None:
        """Print the part of the custom form before the operands."""

    def print_shardings(self, printer: Printer) -> None:
        for name, shardings in (("in_shardings", self.in_shardings), ("out_shardings", self.out_shardings)):
            if shardings is not None:
                printer.print_string(f" {name}={shardings.text()}")


@irdl_op_definition
class ManualComputationOp(ComputationOp):
    """Run the region on each device along the manual axes, on the device's shards of the operands."""

    name = "sdy.manual_computation"

    in_shardings = prop_def(ShardingPerValueAttr)
    out_shardings = prop_def(ShardingPerValueAttr)
    manual_axes = prop_def(ManualAxesAttr)

    def verify_body(self) -> None:
        check_parts("arguments of the region", self.body.block.arg_types, self.operand_types)
        check_parts("values that the region returns", self.returned_types(), self.result_types)

    def verify_(self) -> None:
        super().verify_()
        if self.body.block.args or self.result_types:
            self._verify_axes()
        self._verify_local("in_shardings", self.in_shardings, self.operand_types, self.body.block.arg_types)
        self._verify_local("out_shardings", self.out_shardings, self.result_types, self.returned_types())

    def _verify_axes(self) -> None:
        """Check that the manual axes are axes of the mesh, and that no enclosing computation binds them."""
        for axis in self.manual_axes.data:
            if axis in enclosing_manual_axes(self):
                raise VerifyException(
                    f'operates on axis "{axis}" which is already bound by a parent sdy.manual_computation op'
                )
        texts = (*self.in_shardings.data, *self.out_shardings.data) if is_in_module(self) else ()
        meshes = [
            mesh for text in texts if (mesh := mesh_of(self, parse_sharding(text).mesh)) is not None and mesh.sizes
        ]
        if self.manual_axes.data and any(mesh.sizes != meshes[0].sizes for mesh in meshes):
            raise VerifyException("all in and out shardings must be bound to the same mesh or an empty mesh.")
        for mesh in meshes:
            if unknown := [axis for axis in self.manual_axes.data if axis not in mesh.sizes]:
                raise VerifyException(f'unknown manual axis: "{unknown[0]}"')

    def _verify_local(
        self, name: str, shardings: ShardingPerValueAttr, wholes: Sequence[Attribute], parts: Sequence[Attribute]
    ) -> None:
        """Check that each shard has the extents of its whole value, divided by the sizes of the manual axes."""
        for index, (text, whole, part) in enumerate(zip(shardings.data, wholes, parts, strict=True)):
            sharding = parse_sharding(text)
            mesh = mesh_of(self, sharding.mesh) if is_in_module(self) else None
            if mesh is None or mesh.is_maximal() or not is_tensor(whole) or not is_tensor(part):
                continue
            expected: list[int] = []
            for extent, dimension in zip(whole.get_shape(), sharding.dimensions, strict=True):
                manual = [axis.name in self.manual_axes.data for axis in dimension.axes]
                if manual != sorted(manual, reverse=True):
                    raise VerifyException(f"{name} {index}: manual axes must precede free axes in each dimension")
                size = prod(axis.length(mesh) for axis in dimension.axes if axis.name in self.manual_axes.data)
                check_divisible(f"{name} {index}:", extent, size)
                expected.append(extent if extent == DYNAMIC_INDEX else extent // size)
            if tuple(expected) != part.get_shape():
                raise VerifyException(
                    f"{name} {index}: the value in the region has shape {list(part.get_shape())}, expected {expected}"
                )

    @classmethod
    def parse_shardings(cls, parser: Parser) -> Properties:
        properties = super().parse_shardings(parser)
        parser.parse_keyword("manual_axes")
        parser.parse_punctuation("=")
        return {**properties, "manual_axes": ManualAxesAttr(ManualAxesAttr.parse_parameter(parser))}

    def print_shardings(self, printer: Printer) -> None:
        super().print_shardings(printer)
        printer.print_string(" manual_axes=")
        self.manual_axes.print_parameter(printer)


def check_parts(subject: str, parts: Sequence[Attribute], wholes: Sequence[Attribute]) -> None:
    """Raise `VerifyException` unless each shard has the element type and the rank of its whole value."""
    check_count(subject, len(parts), len(wholes))
    for part, whole in zip(parts, wholes, strict=True):
        if part != whole and (_element_and_rank(part) is None or _element_and_rank(part) != _element_and_rank(whole)):
            words = f"expected the element type and rank of {whole}"
            raise VerifyException(f"one of the {subject} has type {part}, {words}")


def _element_and_rank(type_: Attribute) -> tuple[Attribute, int] | None:
    return (type_.element_type, len(type_.get_shape())) if is_tensor(type_) else None


@irdl_op_definition
class NamedComputationOp(ComputationOp):
    """Run a region that has a name, such as the name of an inlined function."""

    name = "sdy.named_computation"

    computation = prop_def(StringAttr, prop_name="name")

    @classmethod
    def parse_name(cls, parser: Parser) -> Properties:
        with parser.in_angle_brackets():
            return {"name": StringAttr(parser.parse_str_literal())}

    def print_name(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.computation.data)


COMPUTATIONS: list[type[Operation]] = [ShardyReturnOp, ManualComputationOp, NamedComputationOp]
