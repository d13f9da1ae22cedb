"""What the interfaces of MindSpore and Paddle demand of their arguments."""

from __future__ import annotations


def a_callable(who: str, value: object) -> None:
    """Raises `TypeError` for what cannot be called."""
    if not callable(value):
        raise TypeError(f"{who} takes a function, or a module of flax or equinox, not {type(value).__name__}")


def flags(who: str, **given: object) -> None:
    """Raises `TypeError` for a switch that is neither True nor False."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise TypeError(f"{who}: {name} is True or False, not {value!r}")
