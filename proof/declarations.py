"""Declarations of purity that users make for operations of other dialects.

The proof trusts them, and reports the declarations that it relies on. They are independent of the rules of the passes
(`recompute.rules.register`), so that a wrong entry cannot mislead both.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ..support.operations import check_operation_name

_pure: set[str] = set()


def register_pure(name: str) -> None:
    """Declare to the proof that operations with this name are functions of their operands, attributes and regions.

    A proof that relies on the declaration reports it.

    Raises:
        ValueError: The name has no dialect.
    """
    check_operation_name(name)
    _pure.add(name)


def registered_pure() -> frozenset[str]:
    return frozenset(_pure)


@contextmanager
def registrations_undone() -> Generator[None]:
    """Provide a context that undoes on exit all registrations made inside it."""
    pure = set(_pure)
    try:
        yield
    finally:
        _pure.clear()
        _pure.update(pure)
