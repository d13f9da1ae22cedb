"""Which values are offered to lie on the host between the forward pass and their gradient: data that travels with a
plan, which is for the graph that has the moves in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

DEARER = (1, 4, 10**9)
"""A value is offered where a move costs at most so many times what making it does; each of these is tried."""


@dataclass(frozen=True)
class Offload:
    """`marked`: what is marked is moved. `speed`: bytes per second of one direction, 0 where a budget chooses nothing.
    `dearer`: values are offered whose moves take at most so many times the time in which they are made, and those that
    may not be made again; 0 for none. `cost`: in which that time is told, as `rules/costs/cost.py` names it."""

    marked: bool = False
    speed: int = 0
    dearer: int = 0
    cost: str = "flops"

    @property
    def offers(self) -> bool:
        return self.marked or self.dearer > 0

    def variants(self) -> list[Offload]:
        """What a budget tries beside what is marked alone."""
        return [replace(self, dearer=dearer) for dearer in DEARER] if self.speed else []


NOTHING_MOVED = Offload()
