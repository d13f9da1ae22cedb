"""Preparation of texts for jaxlib: expansion of aliases in opaque bodies, numbering of resources."""

from __future__ import annotations

import re
from collections.abc import Callable

from .balance import end_of

_DEFINITION = re.compile(r"(?m)^[ \t]*([#!][\w$-]+)[ \t]*=[ \t]*(?=\S)")
_KNOWN = "affine arith chlo gpu llvm memref mhlo mpmd nvgpu nvvm scf sdy stablehlo tensor ub vector vhlo"
_OPAQUE = re.compile(rf"[#!](?!(?:{_KNOWN.replace(' ', '|')})\b)[A-Za-z_][\w$]*(?:\.[\w$.]+)?<")
"""Of dialects that jaxlib does not know; the others look aliases up themselves."""
_ALIAS = re.compile(r'"(?:[^"\\\n]|\\.)*"|[#!][\w$-]+(?![\w$.<-])')
_LOCATION = re.compile(r"(?m)(?:^[ \t]*#[\w$-]+\s*=\s*| ?\b)loc\(")
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*')
_GAP = re.compile(r'("(?:[^"\\\n]|\\.)*")|(?<=\w)(\s+)(?=\w)|\s+')
_RESOURCE = re.compile(r'(dense_resource<|^ {6}|",)([\w.$-]+)(?=>|: ")', re.M)


def spelled_out(text: str) -> str:
    """Return the text with the aliases in attributes and types of unknown dialects replaced by their definitions.

    MLIR leaves such a body unchanged and drops the definition, so that two equal bodies could have different meanings.
    """
    known: dict[str, str] = {}
    for match in _DEFINITION.finditer(text):
        value = text[match.end() : end_of(text, match.end(), "\n")].strip()
        value = _COMMENT.sub(lambda match: match[1] or "", value)
        plain = _without_gaps(value) if value.startswith("loc") else value
        known.setdefault(match[1], _with_values(plain, known))
    return _opaque_with_values(text, known) if known else text


def _without_gaps(location: str) -> str:
    """Return the location with minimal white space, except in opaque attributes, where it may be significant."""
    return _GAP.sub(lambda match: match[1] or (" " if match[2] else ""), location)


def without_opaque_bodies(text: str) -> str:
    """Return the text without opaque bodies, whose spelling may vary."""
    return _with_bodies(text, lambda body: "")


def _opaque_with_values(text: str, known: dict[str, str]) -> str:
    return _with_bodies(text, lambda body: _with_values(body, known))


def _with_bodies(text: str, new: Callable[[str], str]) -> str:
    matches: list[str] = []
    at = 0
    while (match := _OPAQUE.search(text, at)) is not None:
        end = end_of(text, match.end(), "")
        matches += [text[at : match.end()], new(text[match.end() : end])]
        at = end
    return "".join([*matches, text[at:]])


def _with_values(body: str, known: dict[str, str]) -> str:
    return _ALIAS.sub(lambda match: known.get(match[0], match[0]), body)


def without_locations(text: str) -> str:
    """Return the text without its locations and the definitions of their aliases."""
    matches: list[str] = []
    at = 0
    while (match := _LOCATION.search(text, at)) is not None:
        matches.append(text[at : match.start()])
        at = end_of(text, match.end(), "") + 1
    return "".join([*matches, text[at:]])


def resources_numbered(text: str) -> str:
    """Number the names of resources in reading order, since MLIR renames resources whose name is taken."""
    if "dense_resource<" not in text:
        return text
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return match[1] + numbers.setdefault(match[2], f"r{len(numbers)}")

    return _RESOURCE.sub(number, text)
