"""What is said of a wrong argument."""

from __future__ import annotations


def kind_of(value: object) -> str:
    return type(value).__name__
