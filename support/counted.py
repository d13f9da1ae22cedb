"""Format a count with its noun for messages: `1 operation`, `3 operations`."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return the count with its noun, such as `1 segment` or `2 segments`.

    `plural`: the plural of the noun; by default, the noun with an `s`.
    """
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def counted_are(count: int, noun: str) -> str:
    """Return the count with its noun and verb, such as `1 segment is` or `2 segments are`."""
    return f"{counted(count, noun)} {'is' if count == 1 else 'are'}"
