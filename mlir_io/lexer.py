"""A corrected xDSL lexer: it rejects unterminated strings in linear time, and non-ASCII characters outside strings.

On an unterminated string of forty characters or more, with which a truncated file usually ends, the regular expression
of xDSL 0.74 takes exponential time. Outside strings, xDSL accepts letters and digits of any script, such as
`५` for 5, and treats a form feed as white space. MLIR accepts only ASCII characters, and only blanks, tabs and line
ends as white space.
"""

from __future__ import annotations

import re

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Position, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

_STRING = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')
# Nine of ten tokens match: a single character that cannot begin a longer token, a word, or the name of a value.
_COMMON = re.compile(
    r"[ \t\r\n]*(?:([:,()}\[\]<>=+*?|])|([a-zA-Z_][a-zA-Z0-9_$.]*)|(%(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*)))"
)
_MARKS = ":,()}[]<>=+*?|"
_NAMES = "COLON COMMA L_PAREN R_PAREN R_BRACE L_SQUARE R_SQUARE LESS GREATER EQUAL PLUS STAR QUESTION VERTICAL_BAR"
_PUNCTUATION = {mark: MLIRTokenKind[name] for mark, name in zip(_MARKS, _NAMES.split(), strict=True)}
_KIND_OF_GROUP = (None, None, MLIRTokenKind.BARE_IDENT, MLIRTokenKind.PERCENT_IDENT)


class Lexer(MLIRLexer):
    """xDSL's lexer with a fast path for common tokens and stricter rules for characters and strings."""

    _whitespace_regex = re.compile(r"(?://[^\n]*+\n?|[ \t\r\n]++)*+")

    def lex(self) -> MLIRToken:
        """Return the next token. One regular expression matches the most common tokens, which xDSL's lexer reads
        character by character."""
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
        """Raise `ParseError` if the character at `start`, which xDSL has already consumed, is not ASCII.

        Only this character needs a check: the regular expressions that match the rest of the token accept ASCII only.
        """
        if not (first := self.input.content[start]).isascii():
            raise ParseError(
                Span(start, start + 1, self.input),
                f"unexpected character '{first}': only strings and comments may contain non-ASCII characters",
            )

    def _lex_string_literal(self, start_pos: Position) -> MLIRToken:
        if _STRING.match(self.input.content, start_pos) is None:
            end = self.input.get_end_of_line(start_pos)
            raise ParseError(
                Span(start_pos, end, self.input),
                "the string is not terminated on this line, or contains an invalid escape sequence",
            )
        token = super()._lex_string_literal(start_pos)
        is_text = token.kind is MLIRTokenKind.BYTES_LIT and _is_utf8(token)
        return MLIRToken(MLIRTokenKind.STRING_LIT, token.span) if is_text else token


def _is_utf8(token: MLIRToken) -> bool:
    """Return whether the bytes are UTF-8 text. xDSL prints non-ASCII text with escapes, but parses escapes as bytes."""
    assert isinstance(token.span, StringLiteral), "xDSL creates tokens of bytes only from string literals"
    try:
        token.span.bytes_contents.decode()
    except UnicodeDecodeError:
        return False
    return True
