"""Named scopes for the blocks of a model."""

from __future__ import annotations

from contextlib import AbstractContextManager, ContextDecorator
from typing import TYPE_CHECKING

import jax

if TYPE_CHECKING:

    class Scope(ContextDecorator, AbstractContextManager[None]):
        """The type of `jax.named_scope(...)`."""


SEPARATORS = frozenset("/()#")


def block(name: str) -> Scope:
    """`jax.named_scope(name)`, for `with` or as a decorator: the operations inside form a segment, which
    `recompute.jax.jit` may recompute.

    Raises `TypeError` if `name` is not a str, and `ValueError` if it is empty or has one of / ( ) #.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"block: the name is a str, not {type(name).__name__}")
    if not name or SEPARATORS & set(name):
        raise ValueError(f"block: '{name}' cannot name a segment: give a non-empty name without / ( ) #")
    return jax.named_scope(name)  # pyright: ignore[reportReturnType]
