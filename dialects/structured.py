"""The structured form of a step, in which regions enclose the parts of the forward pass to recompute and the parts of
the backward pass.

    %y = recompute.segment "block0" {
      %a = stablehlo.sine %x : tensor<8xf32>
      %b = stablehlo.tanh %a : tensor<8xf32>
      recompute.yield %b : tensor<8xf32>
    } : tensor<8xf32>
    %g = recompute.gradient {
      ...
    } : tensor<8xf32>

The operations in the regions run in place and use values from outside directly. The passes work on the flat form.
`recompute-inline-segments`, `recompute-inline-gradient` and `recompute-outline-gradient` convert between the forms. The
attributes of a segment apply to its operations. The name of the segment becomes the attribute `recompute.segment` of
its operations. If `recompute.recompute` is false, the results of the operations are saved. With
`recompute.output_recompute`, the outputs are also recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ..support.diagnostics import Refusal
from .names import Names


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Terminate a segment or a gradient; the operands become its results."""

    name = "recompute.yield"

    values = var_operand_def()

    traits = lazy_traits_def(lambda: (IsTerminator(), Pure(), HasParent(SegmentOp, GradientOp)))

    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])


class GroupOp(IRDLOperation):
    """Base class of segments and gradients: one block without arguments that yields the results."""

    body = region_def("single_block")
    outputs = var_result_def()

    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, body: Region, types: Sequence[Attribute], attributes: Mapping[str, Attribute] | None = None):
        super().__init__(result_types=[types], regions=[body], attributes=dict(attributes or {}))

    @property
    def terminator(self) -> YieldOp:
        """The terminator of the region. Raises `VerifyException` if it is not a `recompute.yield`."""
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException(f"{self.name} must end with recompute.yield")
        return last

    def verify_(self) -> None:
        if self.body.block.args:
            raise VerifyException(
                f"{self.name} must not have arguments: its operations read values from outside directly"
            )
        yielded, results = list(self.terminator.operand_types), list(self.result_types)
        if yielded != results:
            text = ["(" + ", ".join(map(str, types)) + ")" for types in (yielded, results)]
            raise VerifyException(f"recompute.yield returns {text[0]}, but the results of {self.name} are {text[1]}")
        self.verify_place(self.parent_op())

    def verify_place(self, parent: Operation | None) -> None:
        """Raise `VerifyException` if the operation may not be in `parent`. For a detached operation, `parent` is
        None."""
        raise NotImplementedError

    @classmethod
    def parse(cls, parser: Parser) -> GroupOp:
        attributes = cls._parse_name(parser)
        if (dictionary := parser.parse_optional_attr_dict_with_keyword()) is not None:
            attributes |= dictionary.data
        body = parser.parse_region()
        types: list[Attribute] = []
        if parser.parse_optional_punctuation(":") is not None:
            types = list(parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type))
        return cls(body, types, attributes)

    @classmethod
    def _parse_name(cls, parser: Parser) -> dict[str, Attribute]:
        return {}

    def print(self, printer: Printer) -> None:
        printed = self._print_name(printer)
        printer.print_op_attributes(self.attributes, reserved_attr_names=printed, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)
        if self.results:
            printer.print_string(" : ")
            printer.print_list(self.result_types, printer.print_attribute)

    def _print_name(self, printer: Printer) -> Sequence[str]:
        """Print the attributes that the custom form shows outside the attribute dictionary, and return their names."""
        return ()


@irdl_op_definition
class SegmentOp(GroupOp):
    """Run a named part of the forward pass that is to be recomputed, and return the operands of `recompute.yield`.

    Outputs with forward uses are saved, unless `recompute.output_recompute` is set.
    """

    name = "recompute.segment"

    def verify_place(self, parent: Operation | None) -> None:
        if isinstance(parent, GradientOp):
            raise VerifyException("a segment belongs to the forward pass and must not be inside recompute.gradient")
        if not isinstance(parent, FuncOp | SegmentOp | None):
            raise VerifyException(
                f"a segment must be in a function or in another segment, not in {parent.name}: "
                f"put all of {parent.name} into the segment"
            )
        if isinstance(self.attributes.get(Names.RECOMPUTE), ArrayAttr):
            raise VerifyException(
                "recompute.recompute on a segment applies to all its operations: expected one value, not a list"
            )
        name = self.attributes.get(Names.SEGMENT)
        if isinstance(name, StringAttr) and (not name.data or "#" in name.data):
            raise VerifyException(
                f"invalid segment name '{name.data}': a name must not be empty, nor contain '#', because '#' precedes "
                "the index of a segment"
            )

    @classmethod
    def _parse_name(cls, parser: Parser) -> dict[str, Attribute]:
        name = parser.parse_optional_str_literal()
        return {} if name is None else {Names.SEGMENT: StringAttr(name)}

    def _print_name(self, printer: Printer) -> Sequence[str]:
        name = self.attributes.get(Names.SEGMENT)
        if not isinstance(name, StringAttr):
            return ()
        printer.print_string(" ")
        printer.print_string_literal(name.data)
        return (Names.SEGMENT,)


@irdl_op_definition
class GradientOp(GroupOp):
    """Run a part of the backward pass, and return the operands of `recompute.yield`."""

    name = "recompute.gradient"

    def verify_place(self, parent: Operation | None) -> None:
        if isinstance(parent, GradientOp):
            raise VerifyException("recompute.gradient must not be nested: only first-order gradients are supported")
        if not isinstance(parent, FuncOp | None):
            raise VerifyException(f"recompute.gradient must be in a function, not in {parent.name}")


def splice(group: GroupOp) -> list[Operation]:
    """Replace the group with the operations of its region, and return these operations in order.

    Raises `Refusal` if the group has an attribute of another dialect, since the attribute would be lost.
    """
    foreign = [name for name in group.attributes if not name.startswith(Names.PREFIX)]
    if foreign:
        raise Refusal(group, f"flattening {group.name} would lose its attribute '{foreign[0]}'; remove it first")
    block = group.parent
    assert block is not None, "a group that is flattened must be in a block"
    terminator = group.terminator
    operations = [op for op in group.body.block.ops if op is not terminator]
    for result, value in zip(group.results, terminator.operands, strict=True):
        value.name_hint = value.name_hint or result.name_hint
        result.replace_all_uses_with(value)
    for op in operations:
        op.detach()
    block.insert_ops_before(operations, group)
    group.detach()
    group.erase()
    return operations
