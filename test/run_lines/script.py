"""RUN lines of a lit file, read by lit's own parser, with its substitutions `%s`, `%S`, `%t` and `%%`.

Supported programs are those of `PROGRAMS`: the console scripts that the suite needs, `diff` of two files, and `sed`.
Any other program raises `NotUnderstood`: the file needs lit itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = ("recompute-opt", "recompute-check", "recompute-run", "xdsl-opt", "filecheck", "diff", "sed")
OTHER_KEYWORDS = ("XFAIL:", "REQUIRES:", "UNSUPPORTED:", "ALLOW_RETRIES:", "DEFINE:", "END.")
MODES = {">": "wb", ">>": "ab"}
_SUBSTITUTION = re.compile(r"%([sSt%])")
# What else lit substitutes; another `%` stays as it is.
_OTHER_SUBSTITUTION = re.compile(r"%(?:[{/:pT]|basename_t|pathsep|errc_|if |else )")


class NotUnderstood(Exception):
    """Error for a file that needs lit itself."""


@dataclass(frozen=True)
class Redirect:
    """Redirection of `descriptor` to a file, or to the target of another descriptor (`>&`)."""

    operator: str
    descriptor: int
    where: str


@dataclass(frozen=True)
class Command:
    """Program with arguments. `negated`: it follows `not`, so it has to fail."""

    arguments: tuple[str, ...]
    redirects: tuple[Redirect, ...]
    negated: bool


Pipeline = tuple[Command, ...]


@dataclass(frozen=True)
class Line:
    """RUN line. Each of its pipelines runs if those before it have succeeded."""

    text: str
    pipelines: tuple[Pipeline, ...]


def script_of(file: Path, folder: Path) -> list[Line]:
    """Return the RUN lines of a file, with `%t` in `folder`. Raises `NotUnderstood` if the file needs lit itself."""
    text = file.read_text()
    if words := [word for word in OTHER_KEYWORDS if word in text]:
        raise NotUnderstood(words[0])
    values = {"s": str(file), "S": str(file.parent), "t": str(folder / f"{file.name}.tmp"), "%": "%"}
    lines = [line.partition("RUN:")[2].strip() for line in text.splitlines() if "RUN:" in line]
    # A line that ends with a backslash goes on in the next one.
    lines = "\n".join(lines).replace("\\\n", "").splitlines()
    if not lines:
        raise NotUnderstood("no RUN line")
    return [Line(line, tuple(_pipelines(_parsed(_substituted(line, values))))) for line in lines]


def _substituted(line: str, values: dict[str, str]) -> str:
    if match := _OTHER_SUBSTITUTION.search(line):
        raise NotUnderstood(match[0])
    return _SUBSTITUTION.sub(lambda value: values[value[1]], line)


def _parsed(line: str) -> Any:
    # lit has no types.
    from lit.ShUtil import ShParser  # pyright: ignore

    try:
        return ShParser(line, pipefail=True).parse()  # pyright: ignore
    except (ValueError, IndexError) as error:  # it looks beyond the end of a line
        raise NotUnderstood(str(error)) from error


def _pipelines(tree: Any) -> Iterator[Pipeline]:
    if not hasattr(tree, "op"):
        yield tuple(_command(command.args, command.redirects) for command in tree.commands)
    elif tree.op == "&&":
        yield from _pipelines(tree.lhs)
        yield from _pipelines(tree.rhs)
    else:
        raise NotUnderstood(tree.op)


def _command(words: list[Any], redirects: list[Any]) -> Command:
    if not all(isinstance(word, str) for word in words):
        raise NotUnderstood("a pattern of file names")
    negated = words[0] == "not"
    arguments = tuple(words[negated:])
    if not arguments or arguments[0] not in PROGRAMS or (arguments[0] == "diff" and len(arguments) != 3):
        raise NotUnderstood(" ".join(words))
    return Command(arguments, tuple(_redirect(*redirect) for redirect in redirects), negated)


def _redirect(token: tuple[Any, ...], where: Any) -> Redirect:
    operator, descriptor = token[0], token[1] if len(token) > 1 else 1
    known = where in ("1", "2") if operator == ">&" else operator in MODES and isinstance(where, str)
    if not known or descriptor not in (1, 2):
        raise NotUnderstood(f"{descriptor}{operator}{where}")
    return Redirect(operator, descriptor, where)
