"""The RUN lines of lit files in this very process, which may hold a mutant. Lines that write files are left out."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

SIMPLE = "recompute-opt %s"
_QUIET = re.compile(r" 2> ?/dev/null")
_ERRORS = re.compile(r" 2>&1( > ?/dev/null)?")


def failing(files: Iterable[Path]) -> Iterator[str]:
    """The RUN lines that fail."""
    for file in files:
        for line in file.read_text().splitlines():
            command = _QUIET.sub("", line.partition("RUN: ")[2])
            writes = "%t" in command or ">" in _ERRORS.sub("", command)
            simple = command.removeprefix("not ").startswith(SIMPLE)
            if simple and not writes and not _holds(command, file):
                yield f"{file.name}: {command}"


def _holds(command: str, file: Path) -> bool:
    from recompute.tools.recompute_opt import main

    stages = [shlex.split(part.replace("%s", str(file))) for part in _ERRORS.sub("", command).split(" | ")]
    fails = stages[0][0] == "not"
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(stages[0][2 if fails else 1 :])
    if (code != 0) != fails:
        return False
    if len(stages) != 2 or stages[1][0] != "filecheck":
        return True
    return _checks(stages[1], _read(command, out.getvalue(), err.getvalue()))


def _read(command: str, out: str, err: str) -> str:
    """What stands behind the pipe; of both streams the errors come first, as one line each."""
    match _ERRORS.search(command):
        case None:
            return out
        case re.Match() as found:
            return err if found[1] else err + out


def _checks(arguments: list[str], text: str) -> bool:
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options

    stdin, sys.stdin = sys.stdin, StringIO(text)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            return Matcher.from_opts(parse_argv_options(arguments)).run() == 0
    finally:
        sys.stdin = stdin
