"""Suggestions for misspelt names in messages: `unknown policy 'dots'; did you mean 'dots_saveable'?`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import SequenceMatcher, get_close_matches
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

MAX_SIMILAR_NAMES = 3
"""The maximum number of similar names that a message about an unknown name lists."""
MIN_PREFIX_LENGTH = 3
"""The minimum length of a word for which a name that begins with it is suggested."""


def similar_names(word: str, names: Iterable[str], most: int = MAX_SIMILAR_NAMES) -> list[str]:
    """Return at most `most` names that resemble the word, in order of decreasing similarity. Equally close names keep
    their order."""
    names = list(names)
    matcher = SequenceMatcher()
    matcher.set_seq2(word)

    def similarity(name: str) -> float:
        matcher.set_seq1(name)
        return matcher.ratio()

    # `get_close_matches` sorts equally close names in reverse, so it only selects the names. They keep their order.
    close = set(get_close_matches(word, names, max(1, len(names))))
    return sorted((name for name in names if name in close), key=similarity, reverse=True)[:most]


def close_name(word: str, names: Iterable[str]) -> str | None:
    """Return the name closest to the word. If no name is close, return the first name that begins with the word, or
    None."""
    names = list(names)
    if close := get_close_matches(word, names, n=1):
        return close[0]
    return next((name for name in names if len(word) >= MIN_PREFIX_LENGTH and name.startswith(word)), None)


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'name'?` for the closest name, or "" if no name is close."""
    close = close_name(word, names)
    return "" if close is None else f"; did you mean '{close}'?"


def suggestion(word: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'name'?` for the closest name, or a list of all names if no name is close."""
    names = list(names)
    return did_you_mean(word, names) or f"; expected one of {', '.join(names)}"


def unexpected_keyword(caller: str, name: str, known: Iterable[str]) -> TypeError:
    """Return the error for an unknown keyword of the function `caller`, with the closest known keyword."""
    return TypeError(f"{caller} got an unexpected keyword argument '{name}'{did_you_mean(name, known)}")


def suggests_keywords(caller: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a function with a fixed list of parameters: its error for an unknown keyword suggests the
    closest one, as Python 3.13 does.

    `caller`: the public name of the function.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = signature(function).parameters

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in parameters:
                    raise unexpected_keyword(caller, name, parameters)
            return function(*args, **kwargs)

        return checked

    return decorate
