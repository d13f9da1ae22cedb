"""Execution of the RUN lines of a lit file in this process, which has imported the tools already and may contain a
mutant."""

from __future__ import annotations

import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from importlib.metadata import entry_points
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from .script import MODES, Command, Pipeline, script_of


def failure(file: Path) -> str | None:
    """Return a description of the first RUN line that fails, or None.

    Raises `NotUnderstood` before anything runs if the file needs lit itself.
    """
    with TemporaryDirectory() as folder:
        for line in script_of(file, Path(folder)):
            for pipeline in line.pipelines:
                code, out, errors = run_pipeline(pipeline)
                if code:
                    return f"RUN: {line.text}\nexit code {code}\n{out}{errors}"
    return None


def run_pipeline(pipeline: Pipeline) -> tuple[int, str, str]:
    """Return (exit status, output, errors). The status is that of the last command that failed, as with `pipefail`."""
    code, piped, errors = 0, b"", BytesIO()
    for command in pipeline:
        result, piped = run_command(command, piped, errors)
        code = result or code
    return code, piped.decode(), errors.getvalue().decode()


def run_command(command: Command, given: bytes, errors: IO[bytes]) -> tuple[int, bytes]:
    """Run a command on this standard input; return its exit status and output. `errors` receives its standard error."""
    piped = BytesIO()
    with ExitStack() as stack:
        streams: dict[int, IO[bytes]] = {1: piped, 2: errors}
        for redirect in command.redirects:
            if redirect.operator == ">&":
                streams[redirect.descriptor] = streams[int(redirect.where)]
            else:
                streams[redirect.descriptor] = stack.enter_context(open(redirect.where, MODES[redirect.operator]))
        out = stack.enter_context(_text(streams[1]))
        same = streams[2] is streams[1]
        code = _call(command.arguments, given, out, out if same else stack.enter_context(_text(streams[2])))
    return int(not code) if command.negated else code, piped.getvalue()


@contextmanager
def _text(stream: IO[bytes]) -> Generator[TextIOWrapper]:
    """Provide a text view of the stream that leaves it open."""
    text = TextIOWrapper(stream, encoding="utf-8", write_through=True)
    yield text
    text.detach()


def _call(arguments: Sequence[str], given: bytes, out: TextIOWrapper, errors: TextIOWrapper) -> int:
    """Return the exit status of the process that these arguments would start."""
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = list(arguments), TextIOWrapper(BytesIO(given), encoding="utf-8")
    try:
        with redirect_stdout(out), redirect_stderr(errors), warnings.catch_warnings():
            return _exit_code(program(arguments[0]))
    finally:
        sys.argv, sys.stdin = before


def _exit_code(main: Callable[[], object]) -> int:
    """Return the exit status with which Python would end the process: the result of `main`, or that of a traceback."""
    try:
        answer = main()
    except SystemExit as end:
        answer = end.code
    except Exception:
        traceback.print_exc()
        return 1
    if answer is None or isinstance(answer, int):
        return answer or 0
    print(answer, file=sys.stderr)
    return 1


@cache
def program(name: str) -> Callable[[], object]:
    """Return the entry point of a console script."""
    if name in OTHERS:
        return OTHERS[name]
    (result,) = entry_points(group="console_scripts", name=name)
    return result.load()


def _sed() -> int:
    completed = subprocess.run(sys.argv, input=sys.stdin.read(), capture_output=True, text=True, check=False)
    print(completed.stdout, end="")
    print(completed.stderr, end="", file=sys.stderr)
    return completed.returncode


def _diff() -> int:
    first, other = (Path(name).read_text() for name in sys.argv[1:])
    if first == other:
        return 0
    print(f"{sys.argv[1]} and {sys.argv[2]} differ")
    return 1


OTHERS: dict[str, Callable[[], object]] = {"diff": _diff, "sed": _sed}
