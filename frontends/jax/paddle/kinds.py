"""The type name of a wrong argument, for messages."""

from __future__ import annotations


def kind_of(value: object) -> str:
    return type(value).__name__
