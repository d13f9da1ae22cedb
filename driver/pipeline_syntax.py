"""The syntax of pipelines, without the passes: elements, brackets and specs, with errors that point at the text.

xDSL parses the spec of a pass, `a{x=1}`. Its errors are replaced by messages that state the expected text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[(){}\[\],]')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_CLOSED_BY = {"(": ")", "{": "}", "[": "]"}

# An unquoted option value with characters that xDSL's lexer reads as punctuation.
_BARE_PATTERN = re.compile(r"""=([^"{},\s]*(?:[^"{},\s\w.+-]|[A-Za-z_]\.|\.[A-Za-z_]|\d\.\d+[A-Za-z])[^"{},\s]*)""")
_VALUE = "expected a value after '='; a text with special characters is quoted: option=\"…\""
_REASONS = {
    "Unknown argument value, wrap argument in quotes to pass arbitrary string values": _VALUE,
    "Malformed pass arguments, expected either a space or `}` here": "options are separated by spaces: {a=1 b=2}",
    "Expected argument name here": "expected the name of an option",
    "Expected equals, space or end of arguments here": "expected '=' after the name of an option, or '}'",
    "Expected pass name here": "expected the name of a pass",
    "Expected a comma or pass arguments here": "expected ',' and another pass, or options in '{…}'",
    "Unknown token": "unexpected character",
}
"""The errors of xDSL's parser of pipelines, with the messages that replace them."""
_COLUMN = re.compile(r"pass-pipeline:\d+:(\d+)")


class BadPipeline(ValueError):
    """A pipeline with a syntax error or an unknown pass."""


def specs(text: str) -> list[ArgSpec]:
    """Parse the specs of passes, `a{x=1},b`. Patterns need no quotes: `segments=block*` is `segments="block*"`.

    Raises `BadPipeline`."""
    quoted = _BARE_PATTERN.sub(r'="\1"', text)
    _demand_each_option_once(quoted)
    try:
        return list(parse_pipeline(quoted))
    except ArgSpecParseError as error:
        raise BadPipeline(_unreadable(text, quoted, str(error))) from error


def _demand_each_option_once(text: str) -> None:
    """Raise `BadPipeline` if a pass has an option twice: xDSL's parser would take the last value in silence."""
    for element in elements(_STRING.sub('""', text)):
        name, _, options = element.partition("{")
        given = [word.partition("=")[0].replace("_", "-") for word in options.rstrip("} ").split()]
        if (twice := next((option for option in given if given.count(option) > 1), None)) is not None:
            raise BadPipeline(f"'{name.strip()}': option '{twice}' may be given once")


def _unreadable(text: str, parsed: str, error: str) -> str:
    """Return the message for a text that xDSL's parser rejects.

    Args:
        text: The text of the user.
        parsed: The text that was parsed: with quotes that the user need not write.
        error: The message of xDSL.
    """
    words = error.strip().splitlines()[-1].strip()
    reason = _REASONS.get(words, words)
    column = _COLUMN.search(error)
    shown = parsed if column is not None and not parsed.startswith(text[: int(column[1]) - 1]) else text
    return f"cannot read the pipeline '{text}': {reason}" if column is None else _at(shown, int(column[1]) - 1, reason)


def elements(text: str) -> Iterator[str]:
    """Split a pipeline at the commas outside brackets and strings."""
    depth, start = 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in "({[":
            depth += 1
        elif token[0] in ")}]":
            depth -= 1
        elif token[0] == "," and not depth:
            yield text[start : token.start()]
            start = token.end()
    yield text[start:]


def demand_closed_brackets(text: str) -> None:
    """Raise `BadPipeline` at the first bracket without a counterpart."""
    opened = list[re.Match[str]]()
    for token in _TOKEN.finditer(text):
        if token[0] in _CLOSED_BY:
            opened.append(token)
        elif token[0] in _CLOSED_BY.values() and (not opened or _CLOSED_BY[opened.pop()[0]] != token[0]):
            raise BadPipeline(_at(text, token.start(), f"'{token[0]}' closes no bracket"))
    if opened:
        raise BadPipeline(_at(text, opened[-1].start(), f"'{opened[-1][0]}' is not closed"))


def _at(text: str, column: int, reason: str) -> str:
    """Return a message with the pipeline and a caret below the place of the error, where the pipeline is one line."""
    if "\n" in text:
        return f"cannot read the pipeline '{text}': {reason}"
    return f"cannot read the pipeline: {reason}\n  {text}\n  {' ' * column}^"
