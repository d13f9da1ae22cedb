"""Turn Ctrl-C and time limits into predicates that a long search polls. An exception, in contrast, could interrupt the
search at any point."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, ClassVar

from .progress import time_limit_shown

_end: ContextVar[float] = ContextVar("_end", default=inf)
"""The end of the innermost time limit, as `time.monotonic` gives it."""


def seconds_left() -> float:
    """Return the seconds until the time limit of the current search; infinity if there is no limit."""
    return max(0.0, _end.get() - monotonic())


class Interrupt:
    """A context in which the first Ctrl-C sets a flag and prints a line, and the second Ctrl-C raises
    `KeyboardInterrupt`."""

    count: ClassVar[int] = 0
    """The number of interrupts in this process. If it increases during a search, the search may have stopped early."""

    def __init__(self) -> None:
        self._is_set = False
        self._before: Any = None

    def is_set(self) -> bool:
        return self._is_set

    def __enter__(self) -> Interrupt:
        try:
            self._before = signal.signal(signal.SIGINT, self._note)
        except ValueError:  # Only the main thread receives signals.
            self._before = None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._is_set = True
        Interrupt.count += 1
        print("interrupted: the best result so far follows, if there is one", file=sys.stderr, flush=True)
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def stop_predicate(seconds: float | None = None) -> Generator[Callable[[], bool], None, None]:
    """Yield a predicate that becomes true after Ctrl-C, or after `seconds` have passed. `seconds_left` and the progress
    line use the same limit."""
    end = inf if seconds is None else monotonic() + seconds
    token = _end.set(min(end, _end.get()))
    try:
        with time_limit_shown(end), Interrupt() as interrupt:
            yield lambda: interrupt.is_set() or monotonic() > end
    finally:
        _end.reset(token)
