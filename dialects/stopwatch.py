"""Where the time of a run goes: parts within parts, each with its seconds.

    with timed() as times:              # who wants to know
        with part("clone"): ...         # who works; as a decorator too: @part("clone")

A stopwatch changes no result, so nobody hands it on: the one that runs is asked for when a part begins. Where none
runs, a part is a look at a variable.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter


@dataclass
class Part:
    """`seconds` are those of its `parts` too. A part that runs several times within another one is told once, where it
    first began."""

    name: str
    seconds: float = 0.0
    parts: dict[str, Part] = field(default_factory=dict[str, "Part"])

    @property
    def rest_seconds(self) -> float:
        """What belongs to none of the parts within."""
        return self.seconds - sum(inner.seconds for inner in self.parts.values())


_current: ContextVar[Part | None] = ContextVar("the part that runs", default=None)


@contextmanager
def timed(name: str = "total") -> Generator[Part]:
    """Run a stopwatch; its times are complete behind the `with`."""
    whole = Part(name)
    with _running(whole):
        yield whole


@contextmanager
def part(name: str) -> Generator[None]:
    """Count what happens inside as a part of what runs."""
    if (outer := _current.get()) is None:
        yield
        return
    with _running(outer.parts.setdefault(name, Part(name))):
        yield


@contextmanager
def _running(one: Part) -> Generator[None]:
    before, start = _current.set(one), perf_counter()
    try:
        yield
    finally:
        one.seconds += perf_counter() - start
        _current.reset(before)
