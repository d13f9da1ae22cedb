"""The options of `recompute.rewrite` that are given as keywords: `recompute.rewrite(step, budget="50%")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..options.keywords import RewriteKeywords
from ..options.option_facts import EntryPoint
from ..options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from ..options.selection import Selection
from ..support.suggestions import unexpected_keyword
from .option_checks import OPTION_CHECKS

_CALLER = EntryPoint.REWRITE.value
_OTHERS = ("options", "name")
"""The parameters of `recompute.rewrite` that are not options."""


def rewrite_options(options: RecomputeOptions, keywords: Mapping[str, Any]) -> RecomputeOptions:
    """Return the options of a call to `recompute.rewrite`, given as an object or as keyword arguments.

    Args:
        options: The options object of the call; the default options if the call has none.
        keywords: Fields of `RecomputeOptions` and of `Selection`.

    Raises:
        TypeError: For an object of the wrong type, an object together with keywords, an unknown keyword, and a value of
            the wrong type.
        ValueError: For an invalid value, and for a selection together with one of its fields.
    """
    if not isinstance(options, RecomputeOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"{_CALLER}: options must be a recompute.RecomputeOptions, not {type(options).__name__}; options can also "
            "be passed as keyword arguments, such as budget='50%'"
        )
    if not keywords:
        return options
    option_names = RewriteKeywords.__annotations__
    for name in keywords:
        if name not in option_names:
            raise unexpected_keyword(_CALLER, name, [*option_names, *_OTHERS])
    if options is not DEFAULT_OPTIONS:
        raise TypeError(
            f"{_CALLER}: give options= or keywords, not both: {next(iter(keywords))} is a field of RecomputeOptions or "
            "of its Selection"
        )
    return _options_of(keywords)


def _options_of(keywords: Mapping[str, Any]) -> RecomputeOptions:
    checked = {name: OPTION_CHECKS[name](f"{_CALLER}: {name}", value) for name, value in keywords.items()}
    of_selection = {field.name: checked.pop(field.name) for field in fields(Selection) if field.name in checked}
    if "selection" not in checked:
        return RecomputeOptions(Selection(**of_selection), **checked)
    if of_selection:
        raise ValueError(f"{_CALLER}: give selection= or {next(iter(of_selection))}=, not both")
    return RecomputeOptions(**checked)
