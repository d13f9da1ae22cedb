"""Argument checks for the MindSpore and Paddle interfaces."""

from __future__ import annotations


def demand_callable(caller: str, value: object) -> None:
    """Raise `TypeError` if the value is not callable."""
    if not callable(value):
        raise TypeError(f"{caller}: expected a function, or a module of flax or equinox, not {type(value).__name__}")


def demand_flags(caller: str, **switches: object) -> None:
    """Raise `TypeError` for a switch that is neither True nor False."""
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise TypeError(f"{caller}: {name} must be True or False, not {value!r}")


def type_name(value: object) -> str:
    """Return the name of the type of a value, for messages."""
    return type(value).__name__
