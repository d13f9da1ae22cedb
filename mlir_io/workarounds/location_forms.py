"""A workaround for locations that xDSL 0.73 and 0.74 cannot parse, so that `xdsl-opt` can read this project's output.

MLIR defines the aliases of locations at the end of a file, after their uses. xDSL expects each definition before the
first use, and also lacks ranges, `"model.py":37:27 to :49`, and the metadata of fused locations.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, LocationAttr
from xdsl.parser import AttrParser, Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ..syntax.location_syntax import parse_location

ALIASED_LATER = 'builtin.module {} loc(#loc)\n#loc = loc("model.py":1:2 to :3)\n'
"""A module with a range, and with an alias that is defined after its use."""
_DEFINITION = re.compile(r"^(#[\w$.-]+)[ \t]*=[ \t]*loc[ \t]*\(", re.MULTILINE | re.ASCII)
_ATTRIBUTE = "_recompute_later_aliases"
"""The attribute in which an xDSL parser stores its `_LaterAliases`."""


@dataclass
class _LaterAliases:
    """The location aliases that the input defines, possibly after their first use.

    Attributes:
        positions: For each definition that has not been parsed, the position after its `loc(`.
        parsed: The location of each alias whose definition has been parsed.
    """

    positions: dict[str, int]
    parsed: dict[str, LocationAttr] = field(default_factory=dict[str, LocationAttr])

    @classmethod
    def of(cls, parser: AttrParser) -> _LaterAliases:
        """Return the aliases in the parser's text. The first call searches the text."""
        attributes = vars(parser)
        if _ATTRIBUTE not in attributes:
            definitions = _DEFINITION.finditer(parser.lexer.input.content)
            attributes[_ATTRIBUTE] = cls({match[1]: match.end() for match in definitions})
        return attributes[_ATTRIBUTE]


def repair_locations() -> None:
    """Apply the workaround for locations.

    This function never raises. If xDSL's internals are not as expected, it prints a warning to standard error.
    """
    try:
        if not reads_later_aliases():
            AttrParser._parse_location = _parse  # pyright: ignore[reportPrivateUsage]
    except Exception as error:
        print(f"recompute: workaround for xDSL's locations not applied: {error}", file=sys.stderr)


def reads_later_aliases() -> bool:
    context = Context()
    context.load_dialect(Builtin)
    try:
        Parser(context, ALIASED_LATER).parse_module()
    except ParseError:
        return False
    return True


def _parse(self: AttrParser) -> LocationAttr:
    """Parse a location of any form, or an alias that may be defined later. This replaces
    `AttrParser._parse_location`."""
    alias = self._parse_optional_token(MLIRTokenKind.HASH_IDENT)  # pyright: ignore[reportPrivateUsage]
    if alias is None:
        return parse_location(self, lambda: _parse(self))
    defined = self.attribute_aliases.get(alias.text)
    if defined is None:
        return _parse_later_alias(self, alias.text)
    if not isinstance(defined, LocationAttr):
        self.raise_error(f"the alias '{alias.text}' does not define a location")
    return defined


def _parse_later_alias(parser: AttrParser, alias: str) -> LocationAttr:
    """Return the location of an alias that the text defines after this use."""
    later = _LaterAliases.of(parser)
    if alias in later.parsed:
        return later.parsed[alias]
    # The position is removed first, so that a definition that refers to itself is an error instead of an endless
    # recursion.
    position = later.positions.pop(alias, None)
    if position is None:
        parser.raise_error(f"undefined location alias '{alias}'")
    here = parser.pos
    parser._resume_from(position)  # pyright: ignore[reportPrivateUsage]
    later.parsed[alias] = _parse(parser)
    parser._resume_from(here)  # pyright: ignore[reportPrivateUsage]
    return later.parsed[alias]
