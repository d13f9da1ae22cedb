"""Write docs/api.md from the signatures and docstrings of the public names.

    python docs/generate_api.py

A test compares the file with what this script makes of the code.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import recompute

OUTPUT = Path(__file__).with_name("api.md")
HEAD = """# Python API

This page lists the public names of `recompute` and `recompute.jax` with their signatures. It is generated from the code
by `docs/generate_api.py`; do not edit. [embedding.md](embedding.md) and [jax.md](jax.md) show them at work.
"""
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Example|Examples|Note):\s*(.*)$")
ENTRY = re.compile(r"^ {4}(\S[^:]*): (.*)$")


def api() -> str:
    return "\n".join([HEAD, *names_of(recompute, "recompute"), *names_of(recompute.jax, "recompute.jax")])


def names_of(module: ModuleType, prefix: str) -> Iterator[str]:
    yield f"## `{prefix}`\n"
    for name in sorted(module.__all__, key=str.lower):
        thing = getattr(module, name)
        if isinstance(thing, ModuleType):
            continue
        yield f"### `{prefix}.{name}`\n"
        if callable(thing):
            yield f"```text\n{signature(name, thing)}\n```\n"
            yield from markdown(documentation(thing))
        yield from methods(name, thing)


def signature(name: str, thing: Any) -> str:
    """The call on one line, or with a line for each parameter where it is long."""
    try:
        inspected = inspect.signature(thing)
    except (TypeError, ValueError):
        return f"{name}(...)"
    # The address of a default value differs from run to run.
    parameters = [
        re.sub(r" at 0x[0-9a-f]+", "", _unquoted(str(parameter))) for parameter in inspected.parameters.values()
    ]
    keyword_only = [parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in inspected.parameters.values()]
    variadic = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in inspected.parameters.values())
    if any(keyword_only) and not variadic:
        parameters.insert(keyword_only.index(True), "*")
    result = inspected.return_annotation
    arrow = "" if result is inspect.Signature.empty or isinstance(thing, type) else f" -> {_text(result)}"
    line = f"{name}({', '.join(parameters)}){arrow}"
    return line if len(line) <= 100 else f"{name}(\n    " + ",\n    ".join(parameters) + f",\n){arrow}"


def _unquoted(parameter: str) -> str:
    """Annotations are strings in modules that evaluate none; a default value that is one keeps its quotes."""
    return re.sub(r"^(\**\w+): '([^']*)'", r"\1: \2", parameter)


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def documentation(thing: Any) -> str:
    """The docstring that the code gives; none for what a dataclass makes by itself."""
    text = inspect.cleandoc(thing.__doc__ or "")
    return "" if isinstance(thing, type) and text.startswith(f"{thing.__name__}(") else text


def markdown(docstring: str) -> Iterator[str]:
    """Google's sections as bold titles and lists; everything else as it stands, examples included."""
    inside = listed = False
    for line in docstring.splitlines():
        if match := SECTION.match(line):
            inside, listed = match[1] not in ("Example", "Examples"), False
            yield f"**{match[1]}:** {match[2]}".rstrip() + ("" if match[2] else "\n")
        elif inside and (match := ENTRY.match(line)):
            listed = True
            yield f"- `{match[1]}`: {match[2]}"
        else:
            inside = inside and (not line or line.startswith(" "))
            yield f"{'  ' if listed else ''}{line.strip()}" if inside and line else line
    yield ""


def methods(name: str, thing: Any) -> Iterator[str]:
    """The documented public methods and properties of a class."""
    if not isinstance(thing, type):
        return
    for attribute, member in vars(thing).items():
        member = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if not attribute.startswith("_") and inspect.isfunction(member) and member.__doc__:
            yield f"**`{name}.{attribute}`**\n"
            yield from markdown(inspect.cleandoc(member.__doc__))


if __name__ == "__main__":
    OUTPUT.write_text(api())
    sys.exit(0)
