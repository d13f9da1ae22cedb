"""xDSL's lexer, except that a string without an end is found at once.

The pattern of xDSL 0.74 tries every way to split such a string into pieces: at forty characters that takes longer than
anyone waits, and a truncated file ends in one more often than not.
"""

from __future__ import annotations

import re

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Position, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken

_STRING = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"')


class Lexer(MLIRLexer):
    def _lex_string_literal(self, start_pos: Position) -> MLIRToken:
        if _STRING.match(self.input.content, start_pos) is None:
            end = self.input.get_end_of_line(start_pos)
            raise ParseError(Span(start_pos, end, self.input), "the string has no end on this line, or a wrong escape")
        return super()._lex_string_literal(start_pos)
