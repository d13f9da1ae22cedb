"""A parser and a printer for pipeline syntax: anchors, brackets and specs. This module does not know which passes
exist.

    a{x=1},b                     specs of passes
    a{x=1},func.func(b,c)        specs with anchors: b and c run on operations that are named func.func
    builtin.module(a,b)          a whole pipeline, anchored at modules

xDSL parses the spec of a pass, `a{x=1}`. Errors of xDSL's parser are replaced with messages that describe the expected
syntax, with a caret at the position of the error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.utils.arg_spec import ArgSpec, ParameterListType, ParameterType, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

MODULE = "builtin.module"
ANY = "any"
"""The anchor that matches every operation in MLIR."""
_ANCHORED = re.compile(r"\s*([\w.]+)\s*\((.*)\)\s*", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[(){}\[\],]')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_CLOSED_BY = {"(": ")", "{": "}", "[": "]"}

# An option value without quotes that contains characters which xDSL's lexer reads as punctuation.
_SPECIAL = r"""[^"{},\s\w.+-]|[A-Za-z_]\.|\.[A-Za-z_]|\d\.\d+[A-Za-z]|(?<==)-[\d.]+[A-Za-z]"""
_BARE_PATTERN = re.compile(rf"""=([^"{{}},\s]*(?:{_SPECIAL})[^"{{}},\s]*)""")
_VALUE = "expected a value after '='; a string with special characters needs quotes: option=\"…\""
_REASONS = {
    "Unknown argument value, wrap argument in quotes to pass arbitrary string values": _VALUE,
    "Malformed pass arguments, expected either a space or `}` here": "options are separated by spaces: {a=1 b=2}",
    "Expected argument name here": "expected the name of an option",
    "Expected equals, space or end of arguments here": "expected '=' after the name of an option, or '}'",
    "Expected pass name here": "expected the name of a pass",
    "Expected a comma or pass arguments here": "expected ',' and another pass, or options in '{…}'",
    "Unknown token": "unexpected character",
}
"""For each error of xDSL's pipeline parser, the message that replaces it."""
_COLUMN = re.compile(r"pass-pipeline:\d+:(\d+)")


class BadPipeline(ValueError):
    """The error for a pipeline that has a syntax error or names an unknown pass."""


@dataclass(frozen=True)
class AnchoredSpec:
    """The spec of a pass with its anchors.

    Attributes:
        spec: The name of the pass and its options.
        path: The names of the nested anchors, from the outermost to the innermost: the pass runs on operations with the
            last name. Empty for a pass on modules.
    """

    spec: ArgSpec
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the spec as MLIR writes it in a pipeline: `func.func(cse)`."""
        options = " ".join(_option_text(name, values) for name, values in self.spec.parameters.items())
        text = f"{self.spec.name}{{{options}}}" if options else self.spec.name
        for anchor in reversed(self.path):
            text = f"{anchor}({text})"
        return text


def _option_text(name: str, values: ParameterListType) -> str:
    return f"{name}={','.join(map(_value_text, values))}" if values else name


def _value_text(value: ParameterType) -> str:
    """Return the value of an option as pipelines spell it. Quotes in the value are escaped, which xDSL's printer does
    not do."""
    if isinstance(value, bool):
        return str(value).lower()
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if isinstance(value, str) else escaped


def anchored_specs(text: str) -> Iterator[AnchoredSpec]:
    """Parse the specs of passes with anchors, `a,func.func(b)`.

    Specs are parsed one at a time, so that the caller reports an unknown pass before a later syntax error.

    Raises:
        BadPipeline: For unbalanced brackets, and for a spec with a syntax error.
    """
    _demand_closed_brackets(text)
    yield from _inside((), text)


def _inside(path: tuple[str, ...], text: str) -> Iterator[AnchoredSpec]:
    """Yield the specs inside the anchors of a path."""
    parts = list(elements(text))
    for element in parts:
        if not element.strip() and len(parts) > 1:
            reason = "expected the name of a pass before and after each comma"
            raise BadPipeline(f"cannot read the pipeline '{text}': {reason}")
        if (anchored := split_anchor(element)) is not None:
            anchor, passes = anchored
            yield from _inside((*path, anchor), passes)
        else:
            yield from (AnchoredSpec(spec, path) for spec in specs(element))


def split_anchor(text: str) -> tuple[str, str] | None:
    """Split `anchor(passes)` into the anchor and the passes; return None if the text does not have this form."""
    match = _ANCHORED.fullmatch(text)
    return None if match is None else (match[1], match[2])


def specs(text: str) -> list[ArgSpec]:
    """Parse the specs of passes, `a{x=1},b`. Patterns need no quotes: `segments=block*` is `segments="block*"`.

    Raises `BadPipeline`.
    """
    quoted = _BARE_PATTERN.sub(r'="\1"', text)
    _demand_each_option_once(quoted)
    try:
        return list(parse_pipeline(quoted))
    except ArgSpecParseError as error:
        raise BadPipeline(_unreadable(text, quoted, str(error))) from error


def _demand_each_option_once(text: str) -> None:
    """Raise `BadPipeline` if an option of a pass is given twice: xDSL's parser would silently use the last value."""
    for element in elements(_STRING.sub('""', text)):
        name, _, options = element.partition("{")
        given = [word.partition("=")[0].replace("_", "-") for word in options.rstrip("} ").split()]
        if (twice := next((option for option in given if given.count(option) > 1), None)) is not None:
            raise BadPipeline(f"'{name.strip()}': option '{twice}' may be given only once")


def _unreadable(text: str, parsed: str, error: str) -> str:
    """Return the error message for a pipeline that xDSL's parser rejects.

    Args:
        text: The text that the user wrote.
        parsed: The text that was parsed, with quotes added that the user need not write.
        error: The message from xDSL.
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


def _demand_closed_brackets(text: str) -> None:
    """Raise `BadPipeline` at the first bracket without a counterpart."""
    opened = list[re.Match[str]]()
    for token in _TOKEN.finditer(text):
        if token[0] in _CLOSED_BY:
            opened.append(token)
        elif token[0] in _CLOSED_BY.values() and (not opened or _CLOSED_BY[opened.pop()[0]] != token[0]):
            raise BadPipeline(_at(text, token.start(), f"'{token[0]}' has no matching opening bracket"))
    if opened:
        raise BadPipeline(_at(text, opened[-1].start(), f"'{opened[-1][0]}' has no matching closing bracket"))


def _at(text: str, column: int, reason: str) -> str:
    """Return the error message with the pipeline. If the pipeline is a single line, a caret marks the error."""
    if "\n" in text:
        return f"cannot read the pipeline '{text}': {reason}"
    return f"cannot read the pipeline: {reason}\n  {text}\n  {' ' * column}^"
