"""Binomial checkpointing schedules. Each schedule reverses a loop with a fixed number of slots, where each slot stores
one loop carry.

A. Griewank, A. Walther, "Algorithm 799: Revolve", 2000. The iterations are needed in reverse order, and an iteration
can run only from its carry. The first slot stores the carry of iteration 0. Each schedule runs the minimum number of
iterations (`advances`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb


@dataclass(frozen=True)
class Advance:
    """An action of the schedule: run `iterations` iterations, and store the carry that they reach in `slot`."""

    iterations: int
    slot: int


@dataclass(frozen=True)
class BackwardStep:
    """The actions that prepare the reversal of one iteration: load the carry of iteration `at` from `slot`, perform the
    advances, then run `last` more iterations."""

    slot: int
    at: int
    advances: tuple[Advance, ...]
    last: int


@dataclass(frozen=True)
class Reversal:
    """A schedule of binomial checkpointing.

    Attributes:
        first: The advances that fill the slots while the loop runs forwards.
        steps: For each iteration, the actions that prepare its reversal; the last iteration comes first.
    """

    first: tuple[Advance, ...]
    steps: tuple[BackwardStep, ...]

    @property
    def iterations(self) -> int:
        """The number of iterations that run forwards in the whole schedule, including those in `first`."""
        later = sum(sum(advance.iterations for advance in step.advances) + step.last for step in self.steps[1:])
        return sum(advance.iterations for advance in self.first) + self.steps[0].last + later


def reversal(iterations: int, slots: int) -> Reversal:
    """Return the schedule that reverses a loop of `iterations` iterations with `slots` slots, and that runs the fewest
    iterations forwards. Both arguments must be at least 1."""
    steps = list(_backward_steps(iterations, slots))
    first = steps[0]
    return Reversal(first.advances, (BackwardStep(_top(first), _end_of(first), (), first.last), *steps[1:]))


def _top(step: BackwardStep) -> int:
    return step.advances[-1].slot if step.advances else step.slot


def _end_of(step: BackwardStep) -> int:
    return step.at + sum(advance.iterations for advance in step.advances)


def _backward_steps(iterations: int, slots: int) -> Iterator[BackwardStep]:
    """Yield the backward steps, the last iteration first. A stack holds the ranges of iterations that remain to be
    reversed, with the earliest range at the bottom. A slot stores the first carry of each range."""
    pieces = [(0, 0, iterations)]
    while pieces:
        start, slot, length = pieces.pop()
        from_slot, at, filled = slot, start, list[Advance]()
        while length > 1 and slot + 1 < slots:
            split = _split_point(length, slots - slot)
            pieces.append((start, slot, split))
            start, slot, length = start + split, slot + 1, length - split
            filled.append(Advance(split, slot))
        yield BackwardStep(from_slot, at, tuple(filled), length - 1)
        if length > 1:
            pieces.append((start, slot, length - 1))


def _split_point(length: int, slots: int) -> int:
    """Return the number of iterations after which the next slot is filled."""
    repeats = _repeats(length, slots)
    return max(1, _reach(slots, repeats - 2), length - _reach(slots - 1, repeats))


def _repeats(length: int, slots: int) -> int:
    """Return the maximum number of times that any iteration runs in an optimal schedule."""
    repeats = 0
    while _reach(slots, repeats) < length:
        repeats += 1
    return repeats


def _reach(slots: int, repeats: int) -> int:
    """Return the number of iterations that can be reversed with these slots if each runs at most `repeats` times."""
    return comb(slots + repeats, slots) if slots >= 0 and repeats >= 0 else 0


def advances(iterations: int, slots: int) -> int:
    """Return the minimum number of iterations that run forwards, according to the formula in the paper."""
    repeats = _repeats(iterations, slots)
    return repeats * iterations - _reach(slots + 1, repeats - 1)
