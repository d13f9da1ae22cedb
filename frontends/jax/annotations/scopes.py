"""Named scopes for blocks of a model, and for calls through the interfaces of MindSpore and Paddle.

The names appear as report rows and as segments. A segment is a part of the forward pass that is recomputed together.
The scope of a call encodes the treatment of its operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ContextDecorator
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import jax
from jax.extend import source_info_util

from ....analysis.request.scope_names import DEFAULT, CallTreatment, MarkedCall, Switches, format_scope

if TYPE_CHECKING:

    class Scope(ContextDecorator, AbstractContextManager[None]):
        """The type of `jax.named_scope(...)`."""


# Operations get the location of the user's line, not of this file.
source_info_util.register_exclusion(__file__)
R = TypeVar("R")
SEPARATORS = frozenset("/()#")
_NUMBERS = count()


def block(name: str) -> Scope:
    """Return a `jax.named_scope` whose operations form a segment. Use the scope in a `with` statement or as a
    decorator.

    Args:
        name: The name of the segment.

    Raises:
        TypeError: If the name is not a str.
        ValueError: If the name is empty or contains one of / ( ) #.

    Example:
        >>> with recompute.jax.block("attention"):  # doctest: +SKIP
        ...     x = attention(x)
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"block: name must be a str, not {type(name).__name__}")
    if not name or SEPARATORS & set(name):
        raise ValueError(f"block: '{name}' cannot name a segment: give a non-empty name without / ( ) #")
    return jax.named_scope(name)  # pyright: ignore[reportReturnType]


def call_in_scope(
    function: Callable[..., R],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    kind: CallTreatment = CallTreatment.SEGMENT,
    switches: Switches = DEFAULT,
) -> R:
    """Call a function inside a scope that encodes the treatment of its operations under `recompute.jax.jit`.

    Args:
        function: The function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        kind: Whether the operations form a segment, are all recomputed, or are all saved.
        switches: The options of the segment.

    Returns:
        The result of the function.
    """
    with jax.named_scope(format_scope(MarkedCall(segment_name(function), next(_NUMBERS), kind, switches))):
        return function(*args, **kwargs)


def segment_name(function: object) -> str:
    """Return the segment name for calls to a function or module: its own name or, if it has none, the name of its
    class.
    """
    name = getattr(function, "__name__", None) or getattr(function, "name", None)
    return name if isinstance(name, str) else type(function).__name__
