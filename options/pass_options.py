"""A class decorator that declares the fields of an options class as options of a pass.

    @dataclass(frozen=True)
    @has_options(Selection)
    class MarkPass(ModulePass):
        name = "recompute-mark"

xDSL parses the options of a pass into its fields, which cannot be nested. Therefore the pass in
`recompute-mark{segments=auto}` needs the fields of `Selection`. If the pass inherited from `Selection`, functions would
accept the pass as a selection, and `replace` would return a pass instead of a selection. Instead, the decorator copies
the fields, and `Selection.of` reads them. From `RecomputeOptions`, the decorator copies only the fields whose metadata
lists the pass (`options/option_facts.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from inspect import get_annotations
from typing import Any, TypeVar

from .option_facts import EntryPoint, option_facts_of, options_with

T = TypeVar("T", bound=type)


def has_options(
    options: type[Any], entry_point: EntryPoint | None = None, first: tuple[str, ...] = ()
) -> Callable[[T], T]:
    """Return a class decorator that copies the fields of the dataclass `options` into the decorated class, ahead of its
    own fields.

    `@dataclass` must be applied after this decorator. A field of the decorated class replaces the copied field of the
    same name, and takes the position of that field.

    Args:
        options: A dataclass whose declared fields have immutable defaults.
        entry_point: The pass whose options are declared; None for all fields.
        first: The names of fields that are declared before the others.
    """

    def declare(declared: T) -> T:
        own = get_annotations(declared)
        listed = list(fields(options) if entry_point is None else options_with(options, entry_point))
        for option in listed:
            assert option.default is not MISSING, f"{options.__name__}.{option.name} has no default"
            if option.name not in own:
                setattr(declared, option.name, option.default)
        listed.sort(key=lambda option: first.index(option.name) if option.name in first else len(first))
        declared.__annotations__ = {option.name: _pass_type(option) for option in listed} | own
        declared.option_sources = (*getattr(declared, "option_sources", ()), options)
        return declared

    return declare


def _pass_type(option: Field[Any]) -> Any:
    return option_facts_of(option).pass_type or option.type


def option_sources(declared: type[Any]) -> tuple[type[Any], ...]:
    """Return the classes whose docstrings describe the options of a pass or a target, the most specific class last.

    The docstring of a pass describes only the options that have a different meaning in the pass than in the declared
    classes.
    """
    return (*getattr(declared, "option_sources", ()), *reversed(declared.__mro__))
