"""Hierarchical timing of a run.

    with time_parts() as times:              # the caller that wants the times
        with part("clone"): ...         # the code to time; also a decorator: @part("clone")

The running stopwatch is a context variable rather than a parameter, because it never affects a result. Without a
stopwatch, `part` only notifies the observer that `watch_parts` has registered.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter


@dataclass
class TimedPart:
    """A named part of a run and its duration.

    `seconds` includes the inner `parts`. If a part runs several times within the same outer part, one entry holds the
    sum of its durations.
    """

    name: str
    seconds: float = 0.0
    parts: dict[str, TimedPart] = field(default_factory=dict[str, "TimedPart"])

    @property
    def rest_seconds(self) -> float:
        """The seconds of this part that were spent outside all inner parts."""
        return self.seconds - sum(inner.seconds for inner in self.parts.values())


_current: ContextVar[TimedPart | None] = ContextVar("the part that runs", default=None)
_watcher: ContextVar[Callable[[str], None] | None] = ContextVar("the observer of parts", default=None)


@contextmanager
def watch_parts(watcher: Callable[[str], None]) -> Generator[None, None, None]:
    """Call `watcher` with the name of each part that begins within the context."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def time_parts(name: str = "total") -> _Running:
    """Return a context that times the code inside it. The yielded `TimedPart` is complete when the context ends."""
    return _Running(TimedPart(name))


def part(name: str) -> _Section:
    """Return a context, or decorator, that times the code inside it as a part of the running stopwatch, if any."""
    return _Section(name)


class _Running:
    # A class rather than a generator, because `contextlib` assigns to exceptions that pass through a generator, and
    # this project's exceptions may be frozen.
    def __init__(self, timed_part: TimedPart):
        self._timed_part = timed_part

    def __enter__(self) -> TimedPart:
        self._before, self._start = _current.set(self._timed_part), perf_counter()
        return self._timed_part

    def __exit__(self, *error: object) -> None:
        self._timed_part.seconds += perf_counter() - self._start
        _current.reset(self._before)


class _Section(ContextDecorator):
    def __init__(self, name: str):
        self._name = name
        self._running: _Running | None = None

    def _recreate_cm(self) -> _Section:
        # Each call needs a new context, because a decorated function may be recursive.
        return _Section(self._name)

    def __enter__(self) -> None:
        if (watcher := _watcher.get()) is not None:
            watcher(self._name)
        if (outer := _current.get()) is not None:
            self._running = _Running(outer.parts.setdefault(self._name, TimedPart(self._name)))
            self._running.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._running is not None:
            self._running.__exit__(*error)
