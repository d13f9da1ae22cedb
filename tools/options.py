"""The options of passes and targets, each with its meaning as the docstring of its class says it.

    segments: `auto`, or a shell-style pattern for scopes (`block*`).
    outputs: recompute what leaves a segment too.

A line that begins with the name of an option begins its meaning, which goes on until the next one or an empty line. A
class inherits what its bases say.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

_ENTRY = re.compile(r"([a-z]\w*): (.+)")


@dataclass(frozen=True)
class Option:
    """`type` and `default` as they are written in Python. `meaning` is empty where the class says none."""

    name: str
    type: str
    default: str
    meaning: str


def options_of(kind: type[Any]) -> list[Option]:
    """The options of a pass or a target, in their order."""
    meanings = dict[str, str]()
    for base in reversed(kind.__mro__):
        meanings |= _meanings(base)
    return [
        Option(field.name, str(field.type), str(field.default), meanings.get(field.name, "").rstrip("."))
        for field in fields(kind)
    ]


def summary(kind: type[Any]) -> str:
    """What the docstring says besides."""
    paragraphs = inspect.cleandoc(kind.__doc__ or "").split("\n\n")
    return "\n\n".join(text for text in paragraphs if not _says_an_option(kind, text.split("\n")[0]))


def _meanings(kind: type[Any]) -> dict[str, str]:
    found, name = dict[str, str](), ""
    for line in inspect.cleandoc(kind.__doc__ or "").split("\n"):
        entry = _ENTRY.match(line)
        if entry is not None and _says_an_option(kind, line):
            name = entry[1]
            found[name] = entry[2]
        elif name and line:
            found[name] += f" {line}"
        else:
            name = ""
    return found


def _says_an_option(kind: type[Any], line: str) -> bool:
    entry = _ENTRY.match(line)
    return entry is not None and entry[1] in getattr(kind, "__dataclass_fields__", {})


def spelled(options: list[Option]) -> Iterator[str]:
    """As `--help-pass` shows them, a line each."""
    for one in options:
        yield f"  {one.name}=<{one.type}>, default {one.default}{': ' if one.meaning else ''}{one.meaning}"
