"""Reads what xDSL drops of a declared function: `func.func private @f(tensor<4xf32> {mhlo.sharding = "…"})`.

xDSL reads the attributes of an argument without a name, and forgets them. They are read again.
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.parser import Parser

_TO_THE_ARGUMENTS = re.compile(r'func(?:\.func)?\s+(?:\w+\s+)?@(?:"(?:[^"\\]|\\.)*"|[\w$.-]+)\s*(?=\()', re.ASCII)


def attributes_of_arguments(parser: Parser, start: int) -> ArrayAttr[DictionaryAttr] | None:
    """`arg_attrs` of the declaration whose pretty form starts there; None where nothing is said. Moves the parser."""
    header = _TO_THE_ARGUMENTS.match(parser.lexer.input.content, start)
    if header is None:
        return None
    parser._resume_from(header.end())  # pyright: ignore[reportPrivateUsage]
    found = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _attributes_of_argument(parser))
    return ArrayAttr(found) if any(each.data for each in found) else None


def _attributes_of_argument(parser: Parser) -> DictionaryAttr:
    parser.parse_type()
    attributes = DictionaryAttr(parser.parse_optional_dictionary_attr_dict())
    parser.parse_optional_location()
    return attributes
