"""xDSL's lexer, with linear-time detection of unterminated strings, and only ASCII outside strings.

On an unterminated string the pattern of xDSL 0.74 backtracks exponentially, from forty characters on without end; a
truncated file usually ends in one. Outside strings xDSL accepts letters and digits of any script, `५` for 5, and a form
feed as white space; MLIR accepts only ASCII, with blanks, tabs and line ends.
"""

from __future__ import annotations

import re

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Position, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

_STRING = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')
# Nine of ten tokens: a character that begins no longer token, a word, or the name of a value.
_COMMON = re.compile(
    r"[ \t\r\n]*(?:([:,()}\[\]<>=+*?|])|([a-zA-Z_][a-zA-Z0-9_$.]*)|(%(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*)))"
)
_MARKS = ":,()}[]<>=+*?|"
_NAMES = "COLON COMMA L_PAREN R_PAREN R_BRACE L_SQUARE R_SQUARE LESS GREATER EQUAL PLUS STAR QUESTION VERTICAL_BAR"
_PUNCTUATION = {mark: MLIRTokenKind[name] for mark, name in zip(_MARKS, _NAMES.split(), strict=True)}
_KIND_OF_GROUP = (None, None, MLIRTokenKind.BARE_IDENT, MLIRTokenKind.PERCENT_IDENT)


class Lexer(MLIRLexer):
    _whitespace_regex = re.compile(r"(?://[^\n]*+\n?|[ \t\r\n]++)*+")

    def lex(self) -> MLIRToken:
        """Return the next token. One pattern matches the most common tokens; xDSL examines each character in turn."""
        match = _COMMON.match(self.input.content, self.pos)
        if match is None or (group := match.lastindex) is None:
            return super().lex()
        start, self.pos = match.span(group)
        kind = _KIND_OF_GROUP[group] or _PUNCTUATION[match[group]]
        return MLIRToken(kind, Span(start, self.pos, self.input))

    def _lex_number(self, start_pos: Position) -> MLIRToken:
        self._refuse_other_scripts(start_pos)
        return super()._lex_number(start_pos)

    def _lex_bare_identifier(self, start_pos: Position) -> MLIRToken:
        self._refuse_other_scripts(start_pos)
        return super()._lex_bare_identifier(start_pos)

    def _refuse_other_scripts(self, start: Position) -> None:
        """Raise `ParseError` if the first character, which xDSL has consumed, is not ASCII; its patterns check the
        others."""
        if not (first := self.input.content[start]).isascii():
            raise ParseError(Span(start, start + 1, self.input), f"Unexpected character: {first}")

    def _lex_string_literal(self, start_pos: Position) -> MLIRToken:
        if _STRING.match(self.input.content, start_pos) is None:
            end = self.input.get_end_of_line(start_pos)
            raise ParseError(Span(start_pos, end, self.input), "the string has no end on this line, or a wrong escape")
        token = super()._lex_string_literal(start_pos)
        is_text = token.kind is MLIRTokenKind.BYTES_LIT and _is_utf8(token)
        return MLIRToken(MLIRTokenKind.STRING_LIT, token.span) if is_text else token


def _is_utf8(token: MLIRToken) -> bool:
    """Return whether the bytes are text: xDSL prints non-ASCII text with escapes, and parses these as bytes."""
    assert isinstance(token.span, StringLiteral), "xDSL makes a token of bytes of a string literal"
    try:
        token.span.bytes_contents.decode()
    except UnicodeDecodeError:
        return False
    return True
