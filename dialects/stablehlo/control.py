"""Loops, the terminator of regions, and the optimization barrier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .checks import check_types
from .formats import parse_all_operands, parse_attributes, parse_type_list, print_attributes, print_operands
from .tensors import check_not_quantized_by_dimension


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Terminate a region, and return values to the enclosing operation."""

    name = "stablehlo.return"

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        operands = parse_all_operands(parser)
        _, attributes = parse_attributes(parser, cls)
        types = parse_type_list(parser) if operands else []
        return cls.create(operands=parser.resolve_operands(operands, types, start), attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attributes(printer, self)
        if self.operands:
            printer.print_string(" : ")
            printer.print_list(self.operand_types, printer.print_attribute)


@irdl_op_definition
class OptimizationBarrierOp(IRDLOperation):
    """Return the operands unchanged. No use of a result runs before all operands are computed."""

    name = "stablehlo.optimization_barrier"

    operand = var_operand_def()
    result = var_result_def()

    traits = traits_def(Pure())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values], result_types=[[value.type for value in values]])

    def verify_(self) -> None:
        if len(self.operands) != len(self.results):
            raise VerifyException(
                f"C1: the number of results is {len(self.results)}, expected {len(self.operands)}, one for each operand"
            )
        for value, result in zip(self.operands, self.results, strict=True):
            check_not_quantized_by_dimension(value.type, "I1")
            check_types("C1: a result", result.type, value.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        _, attributes = parse_attributes(parser, cls)
        if parser.parse_optional_punctuation("(") is not None:
            parser.parse_punctuation(")")
            return cls.create(attributes=attributes)
        start = parser.pos
        operands = parse_all_operands(parser)
        types = parse_type_list(parser)
        resolved = parser.resolve_operands(operands, types, start)
        return cls.create(operands=resolved, result_types=types, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_attributes(printer, self)
        if not self.operands:
            return printer.print_string(" ()")
        print_operands(printer, self.operands)
        printer.print_string(" : ")
        printer.print_list(self.operand_types, printer.print_attribute)


@irdl_op_definition
class WhileOp(IRDLOperation):
    """Run `body` on the carried values while `cond` returns true for them, and return their final values.

    In `stablehlo.while(%iterArg = %a, …) : types cond { … } do { … }`, both regions use the same names for the carried
    values.
    """

    name = "stablehlo.while"

    operand = var_operand_def()
    result = var_result_def()
    cond = region_def("single_block")
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, operands: Sequence[SSAValue], cond: Region, body: Region):
        types = [value.type for value in operands]
        super().__init__(operands=[operands], result_types=[types], regions=[cond, body])

    def verify_(self) -> None:
        carried = self.operand_types
        check_all("C3: the results", self.result_types, carried)
        check_all("C1: the arguments of cond", self.cond.block.arg_types, carried)
        check_all("C2: the arguments of do", self.body.block.arg_types, carried)
        check_all("C1: the values that cond returns", returned_types(self.cond.block), [TensorType(i1, [])])
        check_all("C2: the values that do returns", returned_types(self.body.block), carried)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos

        def binding() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            return argument, parser.parse_unresolved_operand()

        bindings = parser.parse_comma_separated_list(parser.Delimiter.PAREN, binding)
        types = parse_type_list(parser) if bindings else []
        operands = parser.resolve_operands([operand for _, operand in bindings], types, start)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        arguments = [argument.resolve(type) for (argument, _), type in zip(bindings, types, strict=True)]
        parser.parse_keyword("cond")
        cond = parser.parse_region(arguments)
        parser.parse_keyword("do")
        body = parser.parse_region(arguments)
        return cls.create(
            operands=operands,
            result_types=types,
            attributes=attributes.data if attributes is not None else {},
            regions=[cond, body],
        )

    def print(self, printer: Printer) -> None:
        pairs = list(zip(self.body.block.args, self.operands, strict=True))
        with printer.in_parens():
            printer.print_list(pairs, lambda pair: _print_binding(printer, *pair))
        _share_names(printer, self.body.block, self.cond.block)
        if pairs:
            printer.print_string(" : ")
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string("\ncond ")
        printer.print_region(self.cond, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.body, print_entry_block_args=False)


def _print_binding(printer: Printer, argument: SSAValue, operand: SSAValue) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(" = ")
    printer.print_operand(operand)


def _share_names(printer: Printer, named: Block, other: Block) -> None:
    """Print the arguments of `other` with the names of the arguments of `named`."""
    # StableHLO's format requires that two values have the same name. xDSL's printer has no public method for this.
    names = printer._ssa_values  # pyright: ignore[reportPrivateUsage]
    names.update({value: names[name] for name, value in zip(named.args, other.args, strict=True)})


def returned_types(block: Block) -> Sequence[Attribute]:
    """Return the operand types of a block's terminator. Raises `VerifyException` if it is not `stablehlo.return`."""
    if not isinstance(block.last_op, ReturnOp):
        raise VerifyException("expected the region to end with stablehlo.return")
    return block.last_op.operand_types


def check_all(subject: str, actual: Sequence[Attribute], expected: Sequence[Attribute]) -> None:
    if len(actual) != len(expected):
        number = subject.replace("the ", "the number of ", 1)
        raise VerifyException(f"{number} is {len(actual)}, expected {len(expected)}")
    label, _, plain = subject.rpartition(": ")
    one_of = f"{label}: one of {plain}" if label else f"one of {plain}"
    for actual_type, expected_type in zip(actual, expected, strict=True):
        check_types(one_of, actual_type, expected_type)


CONTROL: list[type[Operation]] = [ReturnOp, OptimizationBarrierOp, WhileOp]
