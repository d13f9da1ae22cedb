"""`stablehlo.composite`: an operation from another library, with a function (its decomposition) that computes the same
result.

    %r = stablehlo.composite "acme.gelu" %x {composite_attributes = {approximate = true}, decomposition = @gelu}
        : (tensor<4xf32>) -> tensor<4xf32>

The decomposition defines the operation. The interpreter executes it, the proof compares it, and a pass can inline it.
"""

from __future__ import annotations

import re
from typing import ClassVar, Self

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException

from .checks import Constraint, verify_constraints
from .control import check_all
from .formats import (
    I32_ATTR,
    parse_all_operands,
    parse_attributes,
    print_attributes,
    print_function_type,
    print_operands,
)

_NAMESPACED = re.compile(r"[A-Za-z_]\w*(\.[\w$]+)+")


@irdl_op_definition
class CompositeOp(IRDLOperation):
    """Return the results of the decomposition. A consumer may run its own kernel instead of the decomposition."""

    name = "stablehlo.composite"

    inputs = var_operand_def()
    composite_name = prop_def(StringAttr, prop_name="name")
    composite_attributes = opt_prop_def(DictionaryAttr)
    decomposition = prop_def(SymbolRefAttr)
    version = opt_prop_def(I32_ATTR)
    composite_regions = var_region_def()
    result = var_result_def()

    SPELLED: ClassVar[tuple[str, ...]] = ("name",)

    def verify_(self) -> None:
        verify_constraints(self, CONSTRAINTS)

    @property
    def callee(self) -> FuncOp | None:
        """The decomposition; None if the module around the operation does not define it."""
        table: Operation | None = self
        while table is not None and not table.has_trait(SymbolTable, value_if_unregistered=False):
            table = table.parent_op()
        callee = SymbolTable.lookup_symbol(table, self.decomposition) if table is not None else None
        return callee if isinstance(callee, FuncOp) else None

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = StringAttr(parser.parse_str_literal())
        start = parser.pos
        operands = parse_all_operands(parser)
        regions: list[Region] = []
        if parser.parse_optional_punctuation("(") is not None:
            regions = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_region)
            parser.parse_punctuation(")")
        properties, attributes = parse_attributes(parser, cls, cls.SPELLED)
        parser.parse_punctuation(":")
        types = parser.parse_function_type()
        return cls.create(
            operands=parser.resolve_operands(operands, types.inputs.data, start),
            result_types=types.outputs.data,
            properties={"name": name, **properties},
            attributes=attributes,
            regions=regions,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.composite_name)
        print_operands(printer, self.operands)
        if self.regions:
            printer.print_string(" (")
            printer.print_list(self.regions, printer.print_region)
            printer.print_string(")")
        print_attributes(printer, self, self.SPELLED)
        printer.print_string(" : ")
        print_function_type(printer, self)


def _check_name(op: CompositeOp) -> None:
    if _NAMESPACED.fullmatch(op.composite_name.data) is None:
        raise VerifyException(
            f"invalid composite name '{op.composite_name.data}': expected '<namespace>.<name>', such as 'acme.gelu'"
        )


def _decomposition(op: CompositeOp) -> FuncOp:
    callee = op.callee
    if callee is None:
        raise VerifyException(
            f"the decomposition is @{op.decomposition.string_value()}, but the module has no function with this name"
        )
    return callee


def _check_defined(op: CompositeOp) -> None:
    """Check that the decomposition is defined, if the operation is in a module."""
    if op.get_toplevel_object() is not op:
        _decomposition(op)


def _check_types(op: CompositeOp) -> None:
    if (callee := op.callee) is not None:
        check_all("the operands", op.operand_types, callee.function_type.inputs.data)


def _check_results(op: CompositeOp) -> None:
    if (callee := op.callee) is not None:
        check_all("the results", op.result_types, callee.function_type.outputs.data)


CONSTRAINTS: tuple[Constraint[CompositeOp], ...] = (
    Constraint("C1", _check_name),
    Constraint("C2", _check_defined),
    Constraint("C3", _check_types),
    Constraint("C4", _check_results),
)

COMPOSITE: list[type[Operation]] = [CompositeOp]
