"""Names for the blocks of a model."""

from __future__ import annotations

from contextlib import AbstractContextManager, ContextDecorator
from typing import TYPE_CHECKING

import jax

if TYPE_CHECKING:

    class Scope(ContextDecorator, AbstractContextManager[None]):
        """What `jax.named_scope` gives."""


SEPARATORS = frozenset("/()#")


def block(name: str) -> Scope:
    """`jax.named_scope(name)`, for `with` or as a decorator: what runs inside is a segment, and may be computed again.

    Raises `TypeError` for what is no text, and `ValueError` for a name that no segment can have.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"block: the name is a str, not {type(name).__name__}")
    if not name or SEPARATORS & set(name):
        raise ValueError(f"block: '{name}' cannot name a segment: give it a name without any of / ( ) #")
    return jax.named_scope(name)  # pyright: ignore[reportReturnType]
