"""The RUN lines of lit files in this very process, which may hold a mutant. Lines with files or errors are left out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

SIMPLE = "recompute-opt %s"


def failing(files: Iterable[Path]) -> Iterator[str]:
    """The RUN lines that fail."""
    for file in files:
        for line in file.read_text().splitlines():
            command = line.partition("RUN: ")[2]
            if command.startswith(SIMPLE) and ">" not in command and not _holds(command, file):
                yield f"{file.name}: {command}"


def _holds(command: str, file: Path) -> bool:
    from recompute.tools.recompute_opt import main

    stages = [shlex.split(part.replace("%s", str(file))) for part in command.split(" | ")]
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(StringIO()):
        code = main(stages[0][1:])
    if len(stages) == 1:
        return code == 0
    if len(stages) > 2 or stages[1][0] != "filecheck":
        return True
    return _checks(stages[1], out.getvalue())


def _checks(arguments: list[str], text: str) -> bool:
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options

    stdin, sys.stdin = sys.stdin, StringIO(text)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            return Matcher.from_opts(parse_argv_options(arguments)).run() == 0
    finally:
        sys.stdin = stdin
