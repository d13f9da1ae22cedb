"""The parser from MLIR text to xDSL. The parser accepts the text that JAX prints, with or without debug information."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from functools import cache

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
from xdsl.ir import Attribute, AttributeInvT, Block, Operation, SSAValue, TypeAttribute
from xdsl.parser import ForwardDeclaredValue, UnresolvedOperand
from xdsl.utils.exceptions import (
    DiagnosticException,
    ParseError,
    UnregisteredConstructException,
    VerifyException,
)
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ..dialects.constants.dense import parse_constant, to_standard
from ..dialects.constants.dense_literal import parse_dense
from ..dialects.context import make_context
from ..dialects.stablehlo.creation import ConstantOp
from ..support.locations import TextLine, keep_text_line, keep_text_position, names_no_position
from ..support.suggestions import close_name
from .custom_forms import start_of_name
from .normalize import normalize
from .repeated_lines import RepeatedLineParser
from .resources import ELIDED
from .syntax.numbers import NumberParser
from .workarounds import install
from .xdsl_syntax import SYNTAXES

_PLAIN_TENSOR = re.compile(r"tensor<[\w?]*>")
_PLAIN_NAME = re.compile(r"[\w.$-]+", re.ASCII)
_GAP = r"(?:[ \t\r\n]++|//[^\n]*+\n)*+"
_EMPTY = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+)*+")
_BLOB = re.compile(rf'(?P<name>"[^"]*"|[\w.$-]+){_GAP}:{_GAP}"0x[0-9A-Fa-f]*"', re.ASCII)
"""A resource entry: its name and its content in hexadecimal."""
BRANCHES = frozenset({"cf.br", "cf.cond_br", "cf.switch"})
"""Terminators of functions with more than one block. Such functions are not supported."""
MALFORMED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
    DiagnosticException,
    UnregisteredConstructException,
)
"""The exceptions that xDSL's parsers and constructors raise for some malformed texts instead of `ParseError`.

Causes are an unchecked index, attribute, enumeration or conversion, and an attribute that violates a constraint
(`VerifyException`). They are converted to `ParseError`. The text is not the cause of any other exception, such as
`MemoryError`, so other exceptions are not converted."""
NAME_OF_UNKNOWN = "op_name__"
"""The attribute in which xDSL stores the name of an unregistered operation."""


def parse_module(text: str, name: str = "<input>", context: Context | None = None) -> ModuleOp:
    """Parse a module.

    Args:
        text: MLIR in custom or generic form.
        name: The file name for locations and errors.
        context: The context with the loaded dialects; by default, one with all dialects of this project.

    Raises:
        ParseError: The text is malformed. The error contains the position in the text.
    """
    install()
    return ModuleParser(context or make_context(), text, name).parse_module()


@cache
def _elided_resource(interface: OpAsmDialectInterface) -> str:
    return interface.declare_resource(ELIDED)


class ModuleParser(NumberParser, RepeatedLineParser):
    """xDSL's parser with exact dense constants and a location for every operation.

    As in MLIR, the location of an operation whose text contains no location is its position in the text.
    """

    def __init__(self, context: Context, text: str, name: str = "<input>"):
        super().__init__(context, text, name)
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._file = StringAttr(name)
        self._operations: list[int] = []
        """The start positions of the open operations, with the innermost last."""
        self._last_parsed: Operation | None = None
        """The operation that was parsed last. At the end it is the module, if the text contains a module."""
        self._has_operations = False
        """Whether the text contains anything except aliases and resources."""
        self._first_uses: dict[str, Span] = {}
        """For each value that is used before its definition, the span of its first use."""
        self._types: dict[str, TypeAttribute] = {}
        self._resources: dict[tuple[str, str], str] = {}
        """The name of each resource in this text. It is unique among the resources of all parsed texts."""
        self._defined_resources = set[tuple[str, str]]()
        """The dialect and the name of each resource whose content was parsed."""
        self._in_constant = False

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        try:
            self.read_definitions()
            module = self._parse_top_level(allow_implicit_module)
            self.check_definitions()
        except ParseError as error:
            raise self._explain(error) from error
        except RecursionError as error:
            limit = sys.getrecursionlimit()
            levels = len(self._operations)
            message = (
                f"the text is nested too deeply for Python's recursion limit of {limit}; open operations: {levels}"
            )
            raise ParseError(self._current_token.span, message) from error
        except MALFORMED as error:
            words = " ".join(str(part) for part in error.args) or type(error).__name__
            raise ParseError(self._current_token.span, f"malformed input: {words}") from error
        if module is not self._last_parsed:
            # xDSL has created a module around the top-level operations.
            module.location = self.location_at(0)
        return module

    def _parse_top_level(self, allow_implicit_module: bool) -> ModuleOp:
        """Parse the module. As in MLIR, input that contains only type or attribute aliases is an empty module.

        Input that contains only location aliases is an error, because it is the end of a truncated module.
        """
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError:
            aliases = self.attribute_aliases.values()
            has_only_locations = all(isinstance(value, LocationAttr) for value in aliases)
            if not allow_implicit_module or self._has_operations or has_only_locations:
                raise
        self._last_parsed = module = ModuleOp([])
        module.location = self.location_at(0)
        return module

    def _explain(self, error: ParseError) -> ParseError:
        """Return a clearer error in place of two of xDSL's errors, or the error itself.

        An undefined value is reported at its first use instead of the end of the file. For text without operations, the
        error states that an operation is expected.
        """
        if error.msg.startswith("Could not parse entire input"):
            is_empty = _EMPTY.fullmatch(self.lexer.input.content) is not None
            start = "the file is empty: " if is_empty else ""
            return ParseError(error.span, f"{start}expected an operation, such as 'builtin.module'")
        if not error.msg.startswith("values used but not defined"):
            return error
        name = next(iter(self.forward_ssa_references))
        return ParseError(self._first_uses[name], f"%{name} is used but not defined")

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        value = super().resolve_operand(operand, type)
        if isinstance(value, ForwardDeclaredValue):
            self._first_uses.setdefault(operand.operand_name, operand.span)
        return value

    def parse_optional_operation(self) -> Operation | None:
        self._has_operations = True
        return super().parse_optional_operation()

    def parse_operation(self) -> Operation:
        start, line = self.pos, self.line_at(self.pos)
        op = self.parse_repeated(line) if line is not None else None
        if line is not None and op is None:
            op = self._parse_by_tokens()
            self.learn(line, op)
        op = op or self._parse_by_tokens()
        text = self.lexer.input.content
        name = start_of_name(text, start) if line is None else line.name
        number, column = self._line_and_column(name)
        keep_text_line(op, TextLine(self._file.data, number, text[start:name].rstrip("= \t\r\n")))
        if names_no_position(op.location):
            keep_text_position(op, (self._file.data, number, column))
        self._last_parsed = op
        return op

    def _parse_by_tokens(self) -> Operation:
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
        """Return the location of the innermost operation that is being parsed: the position of its name."""
        return self.location_at(self._name_start())

    def _name_start(self) -> int:
        return start_of_name(self.lexer.input.content, self._operations[-1])

    def location_at(self, position: int) -> LocationAttr:
        """Return the location of a position in the text. Lines and columns are counted from 1."""
        line, column = self._line_and_column(position)
        return FileLineColLoc(self._file, IntAttr(line), IntAttr(column))

    def _line_and_column(self, position: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, position)
        return line, position - self._line_starts[line - 1] + 1

    def _why_unknown(self, name: str) -> str:
        """Return the reason that the custom form of the operation cannot be parsed, and a remedy."""
        if name in BRANCHES:
            return (
                f"'{name}' branches between blocks, but only functions with one block are supported: express the "
                "control flow with stablehlo.while, stablehlo.case or scf"
            )
        remedy = "print it with mlir-opt --mlir-print-op-generic or JAX's get_asm(print_generic_op_form=True)"
        generic = f"only its generic form can be parsed; {remedy}"
        close = self._close_operation(name)
        if close is not None:
            return f"unknown operation '{name}'; did you mean '{close}'? If not, {generic}"
        return f"unknown operation '{name}': {generic}"

    def _close_operation(self, name: str) -> str | None:
        """Return the name of the most similar known operation; None if there is no similar operation.

        The result has a similar name in the same dialect, or the same name in a dialect with a similar name.
        """
        dialects = {dialect.name: dialect for dialect in self.ctx.loaded_dialects}
        prefix, _, suffix = name.partition(".")
        dialect = prefix if prefix in dialects else close_name(prefix, dialects)
        if dialect is None:
            return None
        suffixes = [op.name.partition(".")[2] for op in dialects[dialect].operations]
        close = close_name(suffix, suffixes) if dialect == prefix else suffix
        return f"{dialect}.{close}" if close in suffixes else None

    def _get_op_by_name(self, name: str) -> type[Operation]:
        op_type = super()._get_op_by_name(name)
        start = self._name_start()
        if self.lexer.input.content.startswith('"', start):
            if _PLAIN_NAME.fullmatch(name) is None:
                # xDSL would print other characters without escapes.
                self.raise_error(
                    "the name of an operation must consist of letters, digits and the characters '_', '.', '$' and '-'"
                )
            return op_type
        if op_type in SYNTAXES:
            return SYNTAXES[op_type]
        if issubclass(op_type, UnregisteredOp):
            self.raise_error(self._why_unknown(name), start, start + len(name))
        return op_type

    def _parse_attribute_entry(self) -> tuple[str, Attribute]:
        start = self.pos
        name, value = super()._parse_attribute_entry()
        if name == NAME_OF_UNKNOWN:
            self.raise_error(f"an attribute must not have the name '{name}', because xDSL reserves it", start, self.pos)
        return name, value

    def _parse_block(self) -> Block:
        if self._current_token.kind != MLIRTokenKind.CARET_IDENT:
            self.raise_error("expected an operation, a block or '}'")
        return super()._parse_block()

    def parse_optional_type(self) -> TypeAttribute | None:
        match = _PLAIN_TENSOR.match(self.lexer.input.content, self.pos)
        if match is None:
            return super().parse_optional_type()
        # Types are cached by their text: a program repeats a few distinct types, and xDSL splits `8x256xf32` into ten
        # tokens.
        cached = self._types.get(match[0])
        if cached is not None:
            self._resume_from(match.end())
            return cached
        parsed = super().parse_optional_type()
        if parsed is not None:
            self._types[match[0]] = parsed
        return parsed

    def _parse_dialect_resource_handle(self, dialect_name: str, interface: OpAsmDialectInterface) -> str:
        """Parse the name of a resource, and return a unique name for the resource.

        If the parsed name is already taken, xDSL's method would rename the uses of the resource but not its definition.
        """
        key = dialect_name, self.parse_identifier(" for resource handle")
        if key[1] == ELIDED:
            return _elided_resource(interface)
        if key not in self._resources:
            self._resources[key] = interface.declare_resource(key[1])
        return self._resources[key]

    def _parse_resource(self, dialect_name: str, interface: OpAsmDialectInterface) -> None:
        """Parse a resource. Unlike xDSL, raise `ParseError` for white space between the hexadecimal digits and for a
        second content of the same name. xDSL would print the white space unchanged."""
        blob = _BLOB.match(self.lexer.input.content, self.pos)
        if blob is None:
            self.raise_error("expected a name and a string of hexadecimal digits: 'name: \"0x…\"'")
        name = blob["name"].strip('"')
        if name == ELIDED:
            self.raise_error(f"the name {ELIDED} stands for omitted content, so it cannot have content")
        if (dialect_name, name) in self._defined_resources:
            self.raise_error(f"the resource '{name}' is defined twice")
        self._defined_resources.add((dialect_name, name))
        super()._parse_resource(dialect_name, interface)

    def _parse_external_resources(self) -> None:
        """Skip resources of other tools, such as the pipeline of a reproducer, as MLIR's own tools do."""

        def parse_entry() -> None:
            self.parse_identifier(" for a resource")
            self.parse_punctuation(":")
            if self.parse_optional_str_literal() is None and self.parse_optional_boolean() is None:
                self.raise_error("expected a string or a boolean")

        def parse_group() -> None:
            self.parse_identifier(" for resources")
            self.parse_punctuation(":")
            self.parse_comma_separated_list(self.Delimiter.BRACES, parse_entry)

        self.parse_comma_separated_list(self.Delimiter.BRACES, parse_group)

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
            # xDSL's own attribute would store every element of a splat.
            self._consume_token()
            return parse_constant(self)
        return super()._parse_optional_builtin_parametrized_attr()
