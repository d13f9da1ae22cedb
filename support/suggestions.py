"""Suggestions for misspelt names in messages: `unknown policy 'dots'; did you mean 'dots_saveable'?`."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SHORTEST_PREFIX = 3
"""The fewest letters with which a name is suggested that begins with them."""


def close_name(word: str, names: Iterable[str]) -> str | None:
    """Return the name closest to the word, or else the first one that begins with it; None if there is neither."""
    names = list(names)
    if close := get_close_matches(word, names, n=1):
        return close[0]
    return next((name for name in names if len(word) >= SHORTEST_PREFIX and name.startswith(word)), None)


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """`; did you mean 'name'?`, or nothing."""
    close = close_name(word, names)
    return "" if close is None else f"; did you mean '{close}'?"


def suggestion(word: str, names: Iterable[str]) -> str:
    """`; did you mean 'name'?`, or all names where none is close."""
    names = list(names)
    return did_you_mean(word, names) or f"; known are {', '.join(names)}"
