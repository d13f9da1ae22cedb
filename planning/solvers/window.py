"""A few stages of a plan, cut out: which operations may run again there, what comes in, what has to go out, and how
many bytes are free before it for what is kept up to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from .problem import Pair, Problem
from .sequence import sequence_of

MOST_CANDIDATES = 48
"""Operations beside those that run again now that may do so in a window."""


@dataclass(frozen=True)
class Room:
    """Between two positions before the window: `bytes` that are alive there whatever is kept up to the window, and
    `kept`, the storages that are alive there where they are kept."""

    bytes: int
    kept: frozenset[int]


@dataclass(frozen=True)
class Window:
    """Stages `first` to `last`, the last one not in it; `candidates`, the operations that may run again there, in
    order; `before` and `after`, storages that are in memory at its beginning now, and that are read behind its end;
    `may_enter`, those that could be kept up to its beginning, within `rooms`."""

    first: int
    last: int
    candidates: tuple[int, ...]
    before: frozenset[int]
    after: frozenset[int]
    may_enter: frozenset[int]
    rooms: tuple[Room, ...]

    @property
    def width(self) -> int:
        """Positions of a stage."""
        return len(self.candidates) + 1

    @property
    def end(self) -> int:
        """The position behind the last one."""
        return (self.last - self.first) * self.width

    def position(self, stage: int, op: int) -> int:
        """Where an operation runs in a stage: copies first, in the order of the operations."""
        rank = self.candidates.index(op) if op < stage else self.width - 1
        return (stage - self.first) * self.width + rank


def window_of(problem: Problem, pairs: Collection[Pair], first: int, last: int, most: int = MOST_CANDIDATES) -> Window:
    """The window of stages `first` to `last` of a plan, not `last`. Raises `ValueError` where copies may not run."""
    if not problem.earliest <= first < last <= len(problem) + 1:
        raise ValueError(f"stages {first} to {last} are not a window of copies")
    inside = {op for t, op in pairs if first <= t < last}
    others = list(_makers(problem, inside, first, last))
    chosen = tuple(sorted({*inside, *others[:most]}))
    before, after = (_alive(problem, pairs, stage) for stage in (first, last))
    events = {*chosen, *range(first, min(last, len(problem)))}
    read = {v for op in events for v in problem.reads_of(op)}
    may_enter = before | frozenset([v for v in read | after if problem.maker[v] < first])
    return Window(first, last, chosen, before, after, may_enter, tuple(_rooms(problem, pairs, first, may_enter)))


def windows(problem: Problem, width: int) -> Iterator[tuple[int, int]]:
    """Stages from the first in which copies may run to the end, each in two windows, the last ones first."""
    for last in range(len(problem) + 1, problem.earliest, -max(1, width // 2)):
        yield max(problem.earliest, last - width), last


def _makers(problem: Problem, inside: Collection[int], first: int, last: int) -> Iterator[int]:
    """Who makes what is read in the window, nearest first."""
    queue = [*range(first, min(last, len(problem))), *sorted(inside)]
    seen = set(inside)
    for op in queue:
        for value in problem.reads_of(op):
            maker = int(problem.maker[value])
            if problem.again[maker] and maker + 1 < last and maker not in seen:
                seen.add(maker)
                queue.append(maker)
                yield maker


def _alive(problem: Problem, pairs: Collection[Pair], stage: int) -> frozenset[int]:
    """Storages that are made before a stage and read, or kept, behind its beginning."""
    sequence = sequence_of(problem, [(t, op) for t, op in pairs if t >= stage]).tolist()
    alive = {v for v in range(len(problem.sizes)) if problem.output[v]}
    # Only first executions stand before the stage in this sequence.
    for op in reversed(sequence[min(stage, len(problem)) :]):
        alive.difference_update(problem.makes_of(op))
        alive.update(problem.reads_of(op))
    return frozenset(alive)


def _rooms(problem: Problem, pairs: Collection[Pair], first: int, may_enter: Collection[int]) -> Iterator[Room]:
    """Before the window, between the last uses there of what may be kept up to it."""
    early = [(t, op) for t, op in pairs if t < first]
    head = sequence_of(problem, early).tolist()[: first + len(early)]
    born, used, change = dict[int, int](), dict[int, int](), [0] * (len(head) + 1)

    def ends(v: int) -> None:
        change[born[v]] += int(problem.sizes[v])
        change[used[v] + 1] -= int(problem.sizes[v])

    for at, op in enumerate(head):
        for v in problem.reads_of(op):
            used[v] = at
        for v in problem.makes_of(op):
            if v in born:
                ends(v)
            born[v] = used[v] = at
    for v in born:
        ends(v)
    alive, kept, most = 0, frozenset[int](), 0
    last_uses = dict[int, set[int]]()
    for v in may_enter:
        last_uses.setdefault(used[v] + 1, set()).add(v)
    for at, op in enumerate(head):
        if at in last_uses:
            if kept:
                yield Room(most, kept)
            kept, most = kept | last_uses[at], 0
        alive += change[at]
        most = max(most, alive + int(problem.inner[op]))
    if kept:
        yield Room(most, kept)
