"""Which carries of a loop to keep in so many slots while it is run backwards: binomial checkpoints.

Griewank and Walther, Algorithm 799: Revolve (2000): iteration after iteration is needed, the last one first, and an
iteration runs only from a carry; one carry is kept in each slot, that of iteration 0 in the first of them. Of all ways
to fill the slots this one runs the fewest iterations: `advances`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb


@dataclass(frozen=True)
class Advance:
    """Run so many iterations, and put the carry into a slot."""

    iterations: int
    slot: int


@dataclass(frozen=True)
class Backwards:
    """What is done before one iteration can be run backwards: take the carry of iteration `at` from the slot, advance,
    filling slots, and run `last` iterations more."""

    slot: int
    at: int
    advances: tuple[Advance, ...]
    last: int


@dataclass(frozen=True)
class Reversal:
    """`first`: the slots that are filled while the loop runs forwards. `steps`: for each iteration, the last first."""

    first: tuple[Advance, ...]
    steps: tuple[Backwards, ...]

    @property
    def iterations(self) -> int:
        """How many are run from carry to carry, those that fill the first slots included."""
        behind = sum(sum(advance.iterations for advance in step.advances) + step.last for step in self.steps[1:])
        return sum(one.iterations for one in self.first) + self.steps[0].last + behind


def reversal(iterations: int, slots: int) -> Reversal:
    """The way that runs the fewest iterations. Both are at least 1."""
    steps = list(_reversed(iterations, slots))
    first = steps[0]
    return Reversal(first.advances, (Backwards(_top(first), _reached(first), (), first.last), *steps[1:]))


def _top(step: Backwards) -> int:
    return step.advances[-1].slot if step.advances else step.slot


def _reached(step: Backwards) -> int:
    return step.at + sum(advance.iterations for advance in step.advances)


def _reversed(iterations: int, slots: int) -> Iterator[Backwards]:
    """Pieces of the loop wait, each with its carry in a slot, the first piece at the bottom."""
    waiting = [(0, 0, iterations)]
    while waiting:
        start, slot, length = waiting.pop()
        from_slot, at, filled = slot, start, list[Advance]()
        while length > 1 and slot + 1 < slots:
            split = _split(length, slots - slot)
            waiting.append((start, slot, split))
            start, slot, length = start + split, slot + 1, length - split
            filled.append(Advance(split, slot))
        yield Backwards(from_slot, at, tuple(filled), length - 1)
        if length > 1:
            waiting.append((start, slot, length - 1))


def _split(length: int, slots: int) -> int:
    """After how many iterations the next slot is filled."""
    repeats = _repeats(length, slots)
    return max(1, _reach(slots, repeats - 2), length - _reach(slots - 1, repeats))


def _repeats(length: int, slots: int) -> int:
    """How often an iteration is run at most."""
    repeats = 0
    while _reach(slots, repeats) < length:
        repeats += 1
    return repeats


def _reach(slots: int, repeats: int) -> int:
    """So many iterations can be run backwards with these slots, none of them more often than that."""
    return comb(slots + repeats, slots) if slots >= 0 and repeats >= 0 else 0


def advances(iterations: int, slots: int) -> int:
    """The fewest iterations that have to be run from carry to carry, by the formula of the paper."""
    repeats = _repeats(iterations, slots)
    return repeats * iterations - _reach(slots + 1, repeats - 1)
