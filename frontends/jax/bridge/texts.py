"""What has no shorter way: one type, attribute or dictionary as text, read by our parser."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from jaxlib.mlir import ir
from xdsl.context import Context
from xdsl.ir import Attribute, TypeAttribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ....dialects.dense_literal import parse_dense
from ....mlir_io.parser import ModuleParser
from ....support.type_guards import AnyShaped
from .not_bridged import NotBridged

FoundT = TypeVar("FoundT")
Dictionary = dict[str, Attribute]
_UP_TO_PROPERTIES = re.compile(r'(?:%[^=]*= )?"[\w.$-]+"\([^()]*\)(?:\[[^\]]*\])? ?')
_REGIONS = re.compile(r" ?\(\{(?:\.\.\.)?\}(?:, \{(?:\.\.\.)?\})*\)")
RESOURCE = "dense_resource<"
"""The content of a resource stands at the end of a module only."""


class Texts:
    """The texts of one module."""

    def __init__(self, context: Context):
        self._context = context

    def type(self, type: ir.Type) -> TypeAttribute:
        parser = self._parser(str(type))
        return parser.to_the_end(parser.parse_type())

    def attribute(self, attribute: ir.Attribute) -> Attribute:
        parser = self._parser(str(attribute))
        return parser.to_the_end(parser.parse_attribute())

    def dense(self, constant: ir.Attribute) -> tuple[AnyShaped, bytes]:
        """Type and bits, those of one element for a splat."""
        parser = self._parser(str(constant))
        parser.parse_keyword("dense")
        return parser.to_the_end(parse_dense(parser))

    def dictionaries(self, op: ir.Operation) -> tuple[Dictionary, Dictionary]:
        """What the generic form of the operation shows as properties, and what as attributes."""
        # In its own scope: otherwise MLIR would number all values of the module to print one operation.
        text: Any = op.get_asm(print_generic_op_form=True, skip_regions=True, use_local_scope=True)
        return self._parser(text).parse_dictionaries()

    def _parser(self, text: str) -> _SmallParser:
        if RESOURCE in text:
            raise NotBridged("a constant is a resource")
        return _SmallParser(self._context, text)


class _SmallParser(ModuleParser):
    def to_the_end(self, found: FoundT) -> FoundT:
        """What was found, if it is all that the text says: xDSL stops where it understands no more."""
        if self._current_token.kind != MLIRTokenKind.EOF:
            raise NotBridged(f"not all of it is read: {self.lexer.input.content[:80]}")
        return found

    def parse_dictionaries(self) -> tuple[Dictionary, Dictionary]:
        self._skip(_UP_TO_PROPERTIES)
        properties = self.parse_optional_properties_dict()
        self._skip(_REGIONS)
        return properties, self.parse_optional_attr_dict()

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.lexer.input.content, self.pos)
        if found is not None:
            self._resume_from(found.end())
