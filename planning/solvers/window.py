"""Select a window of consecutive stages of a plan for re-optimization. A window has candidates for copies, live-in and
live-out storages, and limits on the storages that are kept up to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from .problem import Pair, Problem
from .sequence import sequence_of

MAX_CANDIDATES = 48
"""Maximum number of candidates for copies in a window, in addition to the operations that the present plan copies
there. It limits the size of the program that CP-SAT solves for the window."""


@dataclass(frozen=True)
class Room:
    """The memory use in a range of positions before the window. It limits the storages that are kept up to the window.

    Attributes:
        bytes: The maximum of the live bytes in the range, without `kept`.
        kept: The storages that are live in the range only if they are kept up to the window.
    """

    bytes: int
    kept: frozenset[int]


@dataclass(frozen=True)
class StageWindow:
    """A window of consecutive stages of a plan.

    Attributes:
        first, last: The stages from `first` to `last` - 1.
        candidates: The operations that may be rerun in the window, in order.
        live_in: The storages that are live at the start of the window under the current plan.
        live_out: The storages that are read or kept after the end of the window.
        may_enter: The storages that can be kept up to the start of the window.
        rooms: The ranges of positions before the window. Their live bytes limit the storages that can be kept up to the
            window.
    """

    first: int
    last: int
    candidates: tuple[int, ...]
    live_in: frozenset[int]
    live_out: frozenset[int]
    may_enter: frozenset[int]
    rooms: tuple[Room, ...]

    @property
    def width(self) -> int:
        """The number of positions in each stage."""
        return len(self.candidates) + 1

    @property
    def end(self) -> int:
        """The position after the last position of the window."""
        return (self.last - self.first) * self.width

    def position(self, stage: int, op: int) -> int:
        """Return the position of an operation in a stage. The copies come first, in the order of the operations."""
        rank = self.candidates.index(op) if op < stage else self.width - 1
        return (stage - self.first) * self.width + rank


def window_of(
    problem: Problem, pairs: Collection[Pair], first: int, last: int, most: int = MAX_CANDIDATES
) -> StageWindow:
    """Return the window of the stages from `first` to `last` (exclusive) of a plan.

    Args:
        problem: The problem.
        pairs: The copies of the plan.
        first, last: The stages.
        most: The maximum number of candidates in addition to the operations that are copied in the window.

    Raises:
        ValueError: If copies must not run in these stages.
    """
    if not problem.earliest_stage <= first < last <= len(problem) + 1:
        allowed = f"{problem.earliest_stage} to {len(problem) + 1}"
        raise ValueError(f"invalid window [{first}, {last}): it must be non-empty and lie within stages {allowed}")
    inside = {op for t, op in pairs if first <= t < last}
    nearest = list(_makers(problem, inside, first, last))[:most]
    candidates = tuple(sorted({*inside, *nearest}))
    live_in, live_out = (_live_at(problem, pairs, stage) for stage in (first, last))
    executed = {*candidates, *range(first, min(last, len(problem)))}
    read = {v for op in executed for v in problem.operands_of(op)}
    may_enter = live_in | frozenset([v for v in read | live_out if problem.makers[v] < first])
    rooms = tuple(_rooms(problem, pairs, first, may_enter))
    return StageWindow(
        first=first,
        last=last,
        candidates=candidates,
        live_in=live_in,
        live_out=live_out,
        may_enter=may_enter,
        rooms=rooms,
    )


def windows(problem: Problem, width: int) -> Iterator[tuple[int, int]]:
    """Yield overlapping windows over all stages in which copies may run, as pairs (first, last). The last window comes
    first, and most stages are in two windows."""
    for last in range(len(problem) + 1, problem.earliest_stage, -max(1, width // 2)):
        yield max(problem.earliest_stage, last - width), last


def _makers(problem: Problem, inside: Collection[int], first: int, last: int) -> Iterator[int]:
    """Yield the operations that may be rerun and on whose results the window depends, directly or indirectly. The
    nearest operations come first."""
    queue = [*range(first, min(last, len(problem))), *sorted(inside)]
    visited = set(inside)
    for op in queue:
        for value in problem.operands_of(op):
            maker = int(problem.makers[value])
            if problem.may_run_again[maker] and maker + 1 < last and maker not in visited:
                visited.add(maker)
                queue.append(maker)
                yield maker


def _live_at(problem: Problem, pairs: Collection[Pair], stage: int) -> frozenset[int]:
    """Return the storages that are live at the start of a stage."""
    sequence = sequence_of(problem, [(t, op) for t, op in pairs if t >= stage]).tolist()
    alive = {v for v in range(len(problem.storage_bytes)) if problem.is_output[v]}
    # In this sequence only first executions precede the stage.
    for op in reversed(sequence[min(stage, len(problem)) :]):
        alive.difference_update(problem.results_of(op))
        alive.update(problem.operands_of(op))
    return frozenset(alive)


def _rooms(problem: Problem, pairs: Collection[Pair], first: int, may_enter: Collection[int]) -> Iterator[Room]:
    """Yield the rooms before the window. Each storage that may be kept begins a new room, right after its last use
    before the window."""
    copies = [(t, op) for t, op in pairs if t < first]
    prefix = sequence_of(problem, copies).tolist()[: first + len(copies)]
    change, last_use = _live_ranges(problem, prefix)
    room_starts = dict[int, set[int]]()
    for v in may_enter:
        room_starts.setdefault(last_use[v] + 1, set()).add(v)
    live, room_storages, most = 0, frozenset[int](), 0
    for position, op in enumerate(prefix):
        if position in room_starts:
            if room_storages:
                yield Room(most, room_storages)
            room_storages, most = room_storages | room_starts[position], 0
        live += change[position]
        most = max(most, live + int(problem.inner_bytes[op]))
    if room_storages:
        yield Room(most, room_storages)


def _live_ranges(problem: Problem, order: Sequence[int]) -> tuple[list[int], dict[int, int]]:
    """Return the change of the live bytes at each position of an order, and the position of the last use of each
    storage."""
    made_at = dict[int, int]()
    used_at = dict[int, int]()
    change = [0] * (len(order) + 1)

    def end_instance(v: int) -> None:
        change[made_at[v]] += int(problem.storage_bytes[v])
        change[used_at[v] + 1] -= int(problem.storage_bytes[v])

    for position, op in enumerate(order):
        for v in problem.operands_of(op):
            used_at[v] = position
        for v in problem.results_of(op):
            if v in made_at:
                end_instance(v)
            made_at[v] = used_at[v] = position
    for v in made_at:
        end_instance(v)
    return change, used_at
