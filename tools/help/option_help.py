"""Read the options of passes and targets, and their descriptions from the docstrings of the classes.

    segments: `auto`, or a shell-style pattern for scopes (`block*`).
    outputs: also recompute the outputs of segments.

A description starts on the line that begins with the name of the option, and ends before the next option or an empty
line. A class inherits the descriptions of its bases, and of the classes whose options it declares (`has_options`).
In a class with a section `Attributes:`, this section contains the descriptions.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from textwrap import dedent
from typing import Any

from ...driver.pipelines.pipeline import spelling, type_of
from ...options.pass_options import option_sources

_ENTRY = re.compile(r"([a-z]\w*): (.+)")


@dataclass(frozen=True)
class Option:
    """An option of a pass or a target.

    Attributes:
        name: The name of the field.
        type: The type as Python spells it.
        default: The default as Python spells it.
        meaning: The description; empty if there is none.
    """

    name: str
    type: str
    default: str
    meaning: str

    @property
    def spelling(self) -> str:
        """The name as pipelines spell it."""
        return spelling(self.name)


def options_of(kind: type[Any]) -> list[Option]:
    """Return the options of a pass or a target, in the order of its fields."""
    meanings = dict[str, str]()
    for source in option_sources(kind):
        meanings |= _meanings(source)
    return [
        Option(field.name, type_of(field), str(field.default), meanings.get(field.name, "").rstrip("."))
        for field in fields(kind)
    ]


def summary(kind: type[Any]) -> str:
    """Return the docstring of a class without the descriptions of its options."""
    paragraphs = inspect.cleandoc(kind.__doc__ or "").split("\n\n")
    return "\n\n".join(text for text in paragraphs if not _describes_option(kind, text.split("\n")[0]))


def _meanings(kind: type[Any]) -> dict[str, str]:
    meanings, name = dict[str, str](), ""
    text = inspect.cleandoc(kind.__doc__ or "")
    _, has_section, section = text.partition("Attributes:\n")
    for line in (dedent(section) if has_section else text).split("\n"):
        entry = _ENTRY.match(line)
        if entry is not None and _describes_option(kind, line):
            name = entry[1]
            meanings[name] = entry[2][0].lower() + entry[2][1:] if has_section else entry[2]
        elif name and line:
            meanings[name] += f" {line.strip()}"
        else:
            name = ""
    return meanings


def _describes_option(kind: type[Any], line: str) -> bool:
    entry = _ENTRY.match(line)
    return entry is not None and entry[1] in getattr(kind, "__dataclass_fields__", {})


def help_lines(options: list[Option]) -> Iterator[str]:
    """Yield a line for each option, as `--help-pass` prints it."""
    for option in options:
        meaning = f": {option.meaning}" if option.meaning else ""
        yield f"  {option.spelling}=<{option.type}>, default {option.default}{meaning}"
