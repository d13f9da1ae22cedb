"""`--load-rules FILE.py`: a user-given Python file that declares operations of other dialects.

The file is executed with the permissions of the user, and only if the command line names it. The declarations are
removed when the tool ends. Errors are reported with file name and line.
"""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ... import interpreters, proof, rules
from ...analysis.step import phase_sources
from .files import FileError, read_text


def add_rules_option(parser: argparse.ArgumentParser) -> None:
    """Add `--load-rules`."""
    parser.add_argument(
        "--load-rules",
        metavar="FILE.py",
        action="append",
        default=[],
        help="run this Python file first; it declares operations of other dialects (docs/foreign_dialects.md)",
    )


@contextmanager
def load_rules(paths: Sequence[str]) -> Generator[None]:
    """Register the declarations in the files for the duration of the `with` block.

    Raises `FileError` for a file that is missing, is not Python, or raises an exception.
    """
    sources_undone = phase_sources.registrations_undone()
    with (
        rules.registrations_undone(),
        interpreters.registrations_undone(),
        proof.registrations_undone(),
        sources_undone,
    ):
        for path in paths:
            _run(path)
        yield


def _run(path: str) -> None:
    text, _ = read_text(path)
    name = str(Path(path))
    try:
        code = compile(text, name, "exec")
        exec(code, {"__name__": "recompute_rules", "__file__": name})
    except SyntaxError as error:
        position = f"{name}:{error.lineno or 1}:{error.offset or 1}"
        raise FileError(f"{position}: error: invalid Python: {error.msg}") from error
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == name), 1)
        message = " ".join(str(error).split())
        raise FileError(f"{name}:{line}:1: error: {type(error).__name__}{': ' if message else ''}{message}") from error
