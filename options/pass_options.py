"""Declare the fields of an options class as options of a pass.

    @dataclass(frozen=True)
    @has_options(Selection)
    class MarkPass(ModulePass):
        name = "recompute-mark"

xDSL parses the options of a pass into its fields, which cannot be nested. So `recompute-mark{segments=auto}` needs the
fields of `Selection` on the pass. If a pass inherited from `Selection`, functions would accept it as a selection, and
`replace` would return another pass. Instead, the decorator copies the fields, and `Selection.of` reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from inspect import get_annotations
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


def has_options(options: type[Any]) -> Callable[[T], T]:
    """Return a class decorator that declares the fields of a dataclass before the fields of the class itself.

    `@dataclass` must be applied after it.

    Args:
        options: A dataclass. All of its fields must have immutable defaults.
    """

    def declare(declared: T) -> T:
        own = get_annotations(declared)
        for option in fields(options):
            assert option.default is not MISSING, f"{options.__name__}.{option.name} has no default"
            if option.name not in own:
                setattr(declared, option.name, option.default)
        declared.__annotations__ = {option.name: option.type for option in fields(options)} | own
        declared.option_sources = (options,)
        return declared

    return declare


def option_sources(declared: type[Any]) -> tuple[type[Any], ...]:
    """Return the classes whose docstrings describe the options of a pass or a target, the most specific class last."""
    return (*getattr(declared, "option_sources", ()), *reversed(declared.__mro__))
