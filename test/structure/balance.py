"""Extent of a piece of MLIR text by its brackets and strings alone, whatever they mean."""

from __future__ import annotations

import re

_STEP = re.compile(r'"(?:[^"\\]|\\.)*"|->|[<>=]=|[()\[\]{}<>]|[\w.]+|[^"()\[\]{}<>=-]', re.S)
_OPEN, _CLOSE = frozenset("([{<"), frozenset(")]}>")


def end_of(text: str, start: int, stops: str) -> int:
    """Return the first position from `start` on, outside brackets and strings, with one of `stops`; or the end."""
    at, depth = start, 0
    while at < len(text):
        if depth == 0 and text[at] in stops:
            return at
        match = _STEP.match(text, at)
        if match is None:
            at += 1
            continue
        depth += (match[0] in _OPEN) - (match[0] in _CLOSE)
        if depth < 0:
            return at
        at = match.end()
    return at


def pieces(text: str, separator: str = ",") -> list[str]:
    """Return the text split at the separators outside brackets; empty for an empty text."""
    matches: list[str] = []
    at = 0
    while text[at:].strip():
        end = end_of(text, at, separator)
        if end < len(text) and text[end] != separator:
            end = len(text)
        matches.append(text[at:end].strip())
        at = end + 1
    return matches
