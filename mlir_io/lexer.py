"""xDSL's lexer, except that a string without an end is found at once, and that all outside of strings is ASCII.

The pattern of xDSL 0.74 tries every way to split such a string into pieces: at forty characters that takes longer than
anyone waits, and a truncated file ends in one more often than not. Outside of strings xDSL takes letters and digits of
any script, `५` for 5, and a form feed for white space; MLIR takes none but ASCII, and blanks, tabs and line ends.
"""

from __future__ import annotations

import re

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Position, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

_STRING = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')
# Nine tokens of ten: one character that begins no longer token, a word, or the name of a value.
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
        """xDSL looks at each character in turn; here one pattern finds the most common tokens."""
        found = _COMMON.match(self.input.content, self.pos)
        if found is None or (group := found.lastindex) is None:
            return super().lex()
        start, self.pos = found.span(group)
        kind = _KIND_OF_GROUP[group] or _PUNCTUATION[found[group]]
        return MLIRToken(kind, Span(start, self.pos, self.input))

    def _lex_number(self, start_pos: Position) -> MLIRToken:
        self._refuse_other_scripts(start_pos)
        return super()._lex_number(start_pos)

    def _lex_bare_identifier(self, start_pos: Position) -> MLIRToken:
        self._refuse_other_scripts(start_pos)
        return super()._lex_bare_identifier(start_pos)

    def _refuse_other_scripts(self, start: Position) -> None:
        """xDSL consumed the first character already; what follows is ASCII by its patterns."""
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
    """Whether the bytes are text: xDSL prints text outside of ASCII with escapes, and takes these for bytes."""
    assert isinstance(token.span, StringLiteral), "xDSL makes a token of bytes of a string literal"
    try:
        token.span.bytes_contents.decode()
    except UnicodeDecodeError:
        return False
    return True
