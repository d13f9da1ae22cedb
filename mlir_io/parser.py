"""Reads MLIR text as JAX prints it, `as_text(debug_info=True)` included, into xDSL."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right

from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    AnyDenseElement,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    RankedStructure,
    StringAttr,
    UnregisteredOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, AttributeInvT, Block, Operation, SSAValue, TypeAttribute
from xdsl.parser import ForwardDeclaredValue, UnresolvedOperand
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ..dialects.context import make_context
from ..dialects.dense import parse_constant, to_standard
from ..dialects.dense_literal import parse_dense
from ..dialects.stablehlo.creation import ConstantOp
from .custom_forms import start_of_name
from .function_syntax import FunctionSyntax
from .normalize import normalize
from .numbers import NumberParser
from .repeated_lines import RepeatedLineParser
from .undefined_operations import with_custom_form
from .xdsl_workarounds import install

_PLAIN_TENSOR = re.compile(r"tensor<[\w?]*>")
_PLAIN_NAME = re.compile(r"[\w.$-]+", re.ASCII)
_GAP = r"(?:[ \t\r\n]++|//[^\n]*+\n)*+"
_BLOB = re.compile(rf'(?:"[^"]*"|[\w.$-]+){_GAP}:{_GAP}"0x[0-9A-Fa-f]*"', re.ASCII)
"""A resource, with its name."""
NAME_OF_UNKNOWN = "op_name__"
"""Where xDSL keeps the name of an operation that it does not know, among the attributes."""


def parse_module(text: str, name: str = "<input>", context: Context | None = None) -> ModuleOp:
    """Parse a module. Every fault of the text is a `ParseError` that points into it."""
    install()
    return ModuleParser(context or make_context(), text, name).parse_module()


class ModuleParser(NumberParser, RepeatedLineParser):
    """xDSL's parser with exact dense constants and a location for every operation.

    An operation that the text gives no location is where it stands in the text, as in MLIR.
    """

    def __init__(self, context: Context, text: str, name: str = "<input>"):
        super().__init__(context, text, name)
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._file = StringAttr(name)
        self._operations: list[int] = []
        """Where the operations that are being read start, the innermost last."""
        self._outermost: Operation | None = None
        """The operation that was read last; at the end, the module if the text has one."""
        self._first_uses: dict[str, Span] = {}
        """Where a value that was not yet defined was first read."""
        self._types: dict[str, TypeAttribute] = {}
        self._resources: dict[tuple[str, str], str] = {}
        """The name that each resource of this text has among those of all texts that were read."""
        self._in_constant = False

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        try:
            self.read_definitions()
            module = super().parse_module(allow_implicit_module)
            self.check_definitions()
        except ParseError as error:
            raise self._at_first_use(error) from error
        except RecursionError as error:
            limit, levels = sys.getrecursionlimit(), len(self._operations)
            message = f"nested too deeply for Python's recursion limit of {limit}; open operations: {levels}"
            raise ParseError(self._current_token.span, message) from error
        except Exception as error:
            # xDSL meets some malformed texts with assertions, KeyErrors and the like; to the user all are one.
            words = " ".join(str(part) for part in error.args) or type(error).__name__
            raise ParseError(self._current_token.span, f"malformed input: {words}") from error
        if module is not self._outermost:
            # xDSL puts a module around operations that stand alone.
            module.location = self.location_at(0)
        return module

    def _at_first_use(self, error: ParseError) -> ParseError:
        """xDSL finds at the end of the file that a value has no definition; the user wants to know where it is read."""
        if not error.msg.startswith("values used but not defined"):
            return error
        name = next(iter(self.forward_ssa_references))
        return ParseError(self._first_uses[name], f"%{name} is used but not defined")

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        value = super().resolve_operand(operand, type)
        if isinstance(value, ForwardDeclaredValue):
            self._first_uses.setdefault(operand.operand_name, operand.span)
        return value

    def parse_operation(self) -> Operation:
        line = self.line_at(self.pos)
        op = self.parse_repeated(line) if line is not None else None
        if line is not None and op is None:
            op = self._parse_anew()
            self.learn(line, op)
        op = op or self._parse_anew()
        self._outermost = op
        return op

    def _parse_anew(self) -> Operation:
        self._operations.append(self.pos)
        op = super().parse_operation()
        self._normalize(op)
        if self.pos != self._end_of_location:
            op.location = self.operation_location()
        self._operations.pop()
        return op

    def _normalize(self, op: Operation) -> None:
        try:
            normalize(op)
        except VerifyException as error:
            start = self._name_start()
            self.raise_error(f"{op.name}: {error}", start, start + len(op.name))

    def operation_location(self) -> LocationAttr:
        """Where the name of the operation that is being read stands in the text."""
        return self.location_at(self._name_start())

    def _name_start(self) -> int:
        return start_of_name(self.lexer.input.content, self._operations[-1])

    def location_at(self, position: int) -> LocationAttr:
        """Line and column, both from one."""
        line = bisect_right(self._line_starts, position)
        return FileLineColLoc(self._file, IntAttr(line), IntAttr(position - self._line_starts[line - 1] + 1))

    def _get_op_by_name(self, name: str) -> type[Operation]:
        op_type = super()._get_op_by_name(name)
        start = self._name_start()
        if self.lexer.input.content.startswith('"', start):
            if _PLAIN_NAME.fullmatch(name) is None:
                # xDSL prints it without the escapes that it came with.
                self.raise_error("the name of an operation is made of letters, digits and '_', '.', '$', '-'")
            return op_type
        if op_type is FuncOp:
            return FunctionSyntax
        if issubclass(op_type, UnregisteredOp):
            if (readable := with_custom_form(name, op_type)) is not None:
                return readable
            remedy = "mlir-opt writes it with --mlir-print-op-generic, JAX with get_asm(print_generic_op_form=True)"
            words = f"unknown operation '{name}': only the generic form can be read; {remedy}"
            self.raise_error(words, start, start + len(name))
        return op_type

    def _parse_attribute_entry(self) -> tuple[str, Attribute]:
        start = self.pos
        name, value = super()._parse_attribute_entry()
        if name == NAME_OF_UNKNOWN:
            self.raise_error(f"no attribute can be named '{name}': xDSL has a use of its own for it", start, self.pos)
        return name, value

    def _parse_block(self) -> Block:
        if self._current_token.kind != MLIRTokenKind.CARET_IDENT:
            self.raise_error("expected an operation, a block or '}'")
        return super()._parse_block()

    def parse_optional_type(self) -> TypeAttribute | None:
        match = _PLAIN_TENSOR.match(self.lexer.input.content, self.pos)
        if match is None:
            return super().parse_optional_type()
        # A program has few distinct types and names them all the time; `8x256xf32` is ten tokens to xDSL.
        known = self._types.get(match[0])
        if known is not None:
            self._resume_from(match.end())
            return known
        read = super().parse_optional_type()
        if read is not None:
            self._types[match[0]] = read
        return read

    def _parse_dialect_resource_handle(self, dialect_name: str, interface: OpAsmDialectInterface) -> str:
        """xDSL forgets at the definition that it has renamed a resource whose name was taken."""
        said = dialect_name, self.parse_identifier(" for resource handle")
        if said not in self._resources:
            self._resources[said] = interface.declare_resource(said[1])
        return self._resources[said]

    def _parse_resource(self, dialect_name: str, interface: OpAsmDialectInterface) -> None:
        """xDSL takes blanks and line ends between the digits, and prints them as they are."""
        if _BLOB.match(self.lexer.input.content, self.pos) is None:
            self.raise_error("expected 'name: \"0x…\"', hexadecimal digits in one string")
        super()._parse_resource(dialect_name, interface)

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        return to_standard(*parse_dense(self, type))

    def _parse_generic_operation(self, op_type: type[Operation]) -> Operation:
        outer, self._in_constant = self._in_constant, issubclass(op_type, ConstantOp)
        op = super()._parse_generic_operation(op_type)
        self._in_constant = outer
        return op

    def _parse_optional_builtin_parametrized_attr(self) -> Attribute | None:
        token = self._current_token
        if self._in_constant and token.kind == MLIRTokenKind.BARE_IDENT and token.text == "dense":
            # Not by way of xDSL's attribute, which would hold a splat once for each element.
            self._consume_token()
            return parse_constant(self)
        return super()._parse_optional_builtin_parametrized_attr()
