"""The parts of the bridge that depend on MLIR's Python bindings.

These are the builders of the bindings, the default properties that the printed form omits, and the parsers for types
and attributes that the bindings expose only as text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, TypeVar

from jaxlib.mlir import ir
from xdsl.context import Context
from xdsl.ir import Attribute, TypeAttribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ....dialects.constants.dense_literal import parse_dense
from ....dialects.context import make_context
from ....dialects.stablehlo.unary import UNARY, AccurateUnaryOp
from ....mlir_io.parser import ModuleParser
from ....support.type_guards import AnyShaped


class NotBridged(Exception):
    """Raised for a module that can be converted only through its text; the message gives the reason."""


build: Any = ir
"""The builders of the bindings. They are untyped, since their type stubs are incomplete."""

DEFAULT_PROPERTIES: dict[str, dict[str, str]] = {
    "chlo.top_k": {"is_stable": "true"},
    "stablehlo.custom_call": {"has_side_effect": "false", "api_version": "1 : i32", "called_computations": "[]"},
    **{
        operation.name: {
            "result_accuracy": "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>"
        }
        for operation in UNARY
        if issubclass(operation, AccurateUnaryOp)
    },
}


@cache
def defaults_of(name: str) -> tuple[tuple[str, Attribute], ...]:
    """Return the properties that an operation's custom form omits, with their default values."""
    context: Context = make_context()
    return tuple(
        (property, ModuleParser(context, text).parse_attribute())
        for property, text in DEFAULT_PROPERTIES.get(name, {}).items()
    )


ParsedT = TypeVar("ParsedT")
Dictionary = dict[str, Attribute]
_UP_TO_PROPERTIES = re.compile(r'(?:%[^=]*= )?"[\w.$-]+"\([^()]*\)(?:\[[^\]]*\])? ?')
_REGIONS = re.compile(r" ?\(\{(?:\.\.\.)?\}(?:, \{(?:\.\.\.)?\})*\)")
RESOURCE = "dense_resource<"
"""The prefix of a resource attribute, whose content is printed only at the end of a module."""


class Texts:
    """Parses the printed types and attributes of one module."""

    def __init__(self, context: Context):
        self._context = context

    def type(self, type: ir.Type) -> TypeAttribute:
        parser = self._parser(str(type))
        return parser.to_the_end(parser.parse_type())

    def attribute(self, attribute: ir.Attribute) -> Attribute:
        parser = self._parser(str(attribute))
        return parser.to_the_end(parser.parse_attribute())

    def dense(self, constant: ir.Attribute) -> tuple[AnyShaped, bytes]:
        """Parse a dense constant. Return its type and its raw bytes. For a splat, these are the bytes of one
        element."""
        parser = self._parser(str(constant))
        parser.parse_keyword("dense")
        return parser.to_the_end(parse_dense(parser))

    def dictionaries(self, op: ir.Operation) -> tuple[Dictionary, Dictionary]:
        """Parse an operation's properties and attributes from its generic form, which lists properties and attributes
        separately."""
        # Without a local scope, MLIR would number all values of the module to print one operation.
        text: Any = op.get_asm(print_generic_op_form=True, skip_regions=True, use_local_scope=True)
        return self._parser(text).parse_dictionaries()

    def _parser(self, text: str) -> _SmallParser:
        if RESOURCE in text:
            raise NotBridged("the data of a constant is a dialect resource")
        return _SmallParser(self._context, text)


class _SmallParser(ModuleParser):
    def to_the_end(self, parsed: ParsedT) -> ParsedT:
        """Return `parsed`. Raises `NotBridged` if a part of the text was not parsed, since xDSL's parser stops at
        unknown syntax."""
        if self._current_token.kind != MLIRTokenKind.EOF:
            raise NotBridged(f"the parser of xDSL stops before the end of the text: {self.lexer.input.content[:80]}")
        return parsed

    def parse_dictionaries(self) -> tuple[Dictionary, Dictionary]:
        self._skip(_UP_TO_PROPERTIES)
        properties = self.parse_optional_properties_dict()
        self._skip(_REGIONS)
        return properties, self.parse_optional_attr_dict()

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.lexer.input.content, self.pos)
        if match is not None:
            self._resume_from(match.end())
