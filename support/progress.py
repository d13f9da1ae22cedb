"""A progress line on standard error for work that takes more than a few seconds. The line shows the phase; it also
shows the share of completed work and the time left, if they can be estimated.

    with progress("recompute.jax: train_step") as line:
        ...                             # the parts of `timing.py` are the phases
        line.set_phase("compiled plan 2 of 4", 0.5)
        line.result = "580 operations are recomputed"

    recompute.jax: train_step: proving, about 90 % done, 13 s so far, about 1 s left
    recompute.jax: train_step: 580 operations are recomputed; this took 14 s

On a terminal the line is overwritten in place. Otherwise it is printed once, and then logged at the level `INFO`.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from time import monotonic

from .timing import watch_parts

FIRST_TERMINAL_SECONDS, FIRST_FILE_SECONDS = 2.0, 5.0
"""Seconds until the first line is printed, on a terminal and elsewhere. Work that ends earlier prints nothing."""
TERMINAL_SECONDS, LOG_SECONDS = 0.5, 10.0
"""Seconds between lines on a terminal, and between log records elsewhere."""
PHASES = {
    "parse": ("reading", 0.0),
    "prepare": ("preparing", 0.1),
    "plan": ("planning", 0.3),
    "clone": ("copying", 0.75),
    "lower": ("writing", 0.8),
    "prove": ("proving", 0.9),
    "print": ("printing", 0.97),
}
"""For each part that `timing.py` reports: its name in the progress line, and the share of the total time that precedes
it, measured on a small GPT."""
MIN_DONE_SHARE = 0.5
"""The share is shown, and the remaining time is estimated, only if at least this share is done. Earlier estimates would
be wrong by a multiple, because the shares of the phases differ between steps."""
_LOG = logging.getLogger("recompute.progress")
_shown: ContextVar[ProgressLine | None] = ContextVar("the line of progress that is shown", default=None)


@dataclass
class ProgressLine:
    """The state of the work that the progress line shows.

    Attributes:
        task: The name of the work.
        phase: The current phase.
        share: The share of the work that is done, from 0 to 1.
        result: The text of the last line; if it is empty, no last line is printed.
        span: The shares at which the current part of the work begins and ends. The phases of `timing.py` are mapped to
            shares of this part, so that a part in which phases are repeated does not seem complete after the first
            round.
        expected_seconds: The estimated total time, computed from `share` whenever `share` rises; 0 before half of the
            work is done.
        has_estimate: Whether to estimate the time left. It becomes false permanently when the work takes longer than
            estimated or when a compilation begins, because the duration of a compilation is unknown.
        start: The start time, as `time.monotonic` gives it.
        limit_end: The end of the time limit of the search, as `time.monotonic` gives it; infinite without a limit.
    """

    task: str
    phase: str = ""
    share: float = 0.0
    result: str = ""
    span: tuple[float, float] = (0.0, 1.0)
    expected_seconds: float = 0.0
    has_estimate: bool = True
    start: float = field(default_factory=monotonic)
    limit_end: float = inf

    def set_phase(self, phase: str, share: float | None = None) -> None:
        """Enter a phase.

        The displayed share never decreases, although a phase may be repeated for each candidate, and never exceeds 1.
        """
        seconds, share_before = monotonic() - self.start, self.share
        self._end_missed_estimate(seconds)
        self.phase, self.share = phase, min(1.0, max(self.share, share or 0.0))
        if self.share > share_before and self.share >= MIN_DONE_SHARE:
            total = seconds / self.share
            # An estimate never rises.
            self.expected_seconds = min(self.expected_seconds or total, total) if self.has_estimate else total
        _LOG.debug("%s: %s after %.1f s", self.task, phase, seconds)

    def enter(self, part: str) -> None:
        """Enter the phase that corresponds to a part of `timing.py`; parts without a phase are ignored."""
        if part in PHASES:
            phase, share = PHASES[part]
            first, end = self.span
            self.set_phase(phase, first + (end - first) * share)

    def clear(self) -> None:
        """Clear the line on a terminal before other text is printed there. The next update shows it again."""
        if _shown.get() is self and sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def begin(self, phase: str, first: float, end: float) -> None:
        """Enter a phase that compiles, during which the share of completed work rises from `first` to `end`.

        The time left is not estimated, because the duration of a compilation is unknown.
        """
        self.span, self.has_estimate = (first, end), False
        self.set_phase(phase, first)

    def update(self) -> str:
        """Return the line: the phase, the share, the elapsed time, and an estimate of the time left if there is one.

        The share never falls and the estimate never rises from line to line. If the work takes longer than the share
        suggests, the share is wrong, so it is not shown until it rises.
        """
        seconds = monotonic() - self.start
        self._end_missed_estimate(seconds)
        seconds_left = self.expected_seconds - seconds
        share = f", about {100 * self.share:.0f} % done" if seconds_left >= 0 and self.share < 1 else ""
        left = f", about {seconds_left:.0f} s left" if self.has_estimate and seconds_left >= 0.5 else ""
        if monotonic() > self.limit_end:
            share, left = f" ({FINISHING})", ""
        return f"{self.task}: {self.phase or 'working'}{share}, {seconds:.0f} s so far{left}"

    def _end_missed_estimate(self, seconds: float) -> None:
        """Stop estimating if the estimated time has passed. `seconds`: the elapsed time."""
        self.has_estimate = self.has_estimate and not 0 < self.expected_seconds < seconds


FINISHING = "the time limit has passed; the best result so far is being finished"


@contextmanager
def time_limit_shown(end: float) -> Generator[None, None, None]:
    """Let the progress line, if there is one, report when a time limit has passed. `end`: the end of the time limit, as
    `time.monotonic` gives it."""
    line = _shown.get()
    if line is None:
        yield
        return
    before, line.limit_end = line.limit_end, min(end, line.limit_end)
    try:
        yield
    finally:
        line.limit_end = before


@contextmanager
def phase_shown(phase: str) -> Generator[None, None, None]:
    """Show a phase in the progress line while the context is open, and restore the preceding phase afterwards. The
    share of completed work does not change."""
    line = _shown.get()
    if line is None:
        yield
        return
    before, line.phase = line.phase, phase
    try:
        yield
    finally:
        line.phase = before


@contextmanager
def progress(task: str, only_on_terminal: bool = False, has_parts: bool = True) -> Generator[ProgressLine, None, None]:
    """Show a progress line while the context is open, if it is open for more than a few seconds.

    If standard error is not a terminal, at most two lines are printed: the line after `FIRST_FILE_SECONDS`, and the
    result.

    A nested call yields the outer line instead of opening a second line.

    Args:
        task: The name of the work.
        only_on_terminal: Print nothing if standard error is not a terminal, for tools that write JSON or IR there.
        has_parts: Show each part that `timing.py` measures as a phase. If false, the caller enters the phases.
    """
    if (outer := _shown.get()) is not None:
        yield outer
        return
    line, finished = ProgressLine(task), threading.Event()
    is_terminal = sys.stderr.isatty()
    if only_on_terminal and not is_terminal:
        yield line
        return
    token = _shown.set(line)
    printer = threading.Thread(target=_show, args=(line, finished, is_terminal), daemon=True)
    printer.start()
    try:
        with watch_parts(line.enter) if has_parts else nullcontext():
            yield line
    finally:
        finished.set()
        printer.join()
        _shown.reset(token)
        _end(line, is_terminal)


def _show(line: ProgressLine, finished: threading.Event, is_terminal: bool) -> None:
    """Show the line until the work is finished."""
    if finished.wait(_first_seconds(is_terminal)):
        return
    if not is_terminal:
        print(line.update(), file=sys.stderr, flush=True)
        while not finished.wait(LOG_SECONDS):
            _LOG.info("%s", line.update())
        return
    print(f"\r\x1b[K{line.update()}", end="", file=sys.stderr, flush=True)
    while not finished.wait(TERMINAL_SECONDS):
        print(f"\r\x1b[K{line.update()}", end="", file=sys.stderr, flush=True)


def _first_seconds(is_terminal: bool) -> float:
    return FIRST_TERMINAL_SECONDS if is_terminal else FIRST_FILE_SECONDS


def _end(line: ProgressLine, is_terminal: bool) -> None:
    """Print the result, if a progress line was shown."""
    seconds = monotonic() - line.start
    _LOG.info("%s: %s after %.1f s", line.task, line.result or "ended", seconds)
    if seconds < _first_seconds(is_terminal):
        return
    clear = "\r\x1b[K" if is_terminal else ""
    words = f"{line.task}: {line.result}; this took {seconds:.0f} s\n" if line.result else ""
    print(f"{clear}{words}", end="", file=sys.stderr, flush=True)
