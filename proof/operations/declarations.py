"""Declarations of purity that users make for operations of other dialects.

The proof trusts these declarations and reports each declaration on which it relies. The passes have their own rules
(`recompute.rules.register`), so that one wrong entry cannot mislead both the passes and the proof.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ...support.operations import check_operation_name

_pure: set[str] = set()


def register_pure(name: str) -> None:
    """Declare to the proof that every operation with this name is a function of its operands, attributes and regions.

    Each proof that relies on the declaration reports it.

    Raises:
        ValueError: The name contains no dialect; an example of a valid name is `acme.swish`.
    """
    check_operation_name(name)
    _pure.add(name)


def registered_pure() -> frozenset[str]:
    return frozenset(_pure)


@contextmanager
def registrations_undone() -> Generator[None]:
    """Return a context manager that, on exit, undoes all registrations made inside it."""
    pure = set(_pure)
    try:
        yield
    finally:
        _pure.clear()
        _pure.update(pure)
