"""The interface that the user calls: Python or the command line. Messages spell options as this interface does:
`proof=False` or `--no-proof`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_is_command_line: ContextVar[bool] = ContextVar("whether a command-line tool runs", default=False)


@contextmanager
def command_line() -> Generator[None, None, None]:
    """Within the context, spell options in messages as command-line flags and pipeline options."""
    token = _is_command_line.set(True)
    try:
        yield
    finally:
        _is_command_line.reset(token)


def is_command_line() -> bool:
    """Return whether the user's interface is a command-line tool."""
    return _is_command_line.get()


def interface_wording(on_command_line: str, in_python: str) -> str:
    """Return the text for the interface that the user calls."""
    return on_command_line if is_command_line() else in_python


def option(name: str) -> str:
    """Return the name of an option as the user's interface spells it: `primal-results` in a pipeline, `primal_results`
    in Python."""
    return interface_wording(name, name.replace("-", "_"))
