"""Which values are offered to lie on the host between the forward pass and their gradient: data that travels with a
plan, which is for the graph that has the moves in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

CHOICES = ((50, 1), (100, 1), (150, 1), (10**6, 1))
"""What a budget tries: how much is offered, in percent of what the link can move beside the forward pass, and how many
percent of a move are charged. Copies run beside the work; what does not fit beside it is charged at the end."""


@dataclass(frozen=True)
class Offload:
    """`marked`: what is marked is moved. `speed`: bytes per second of one direction, 0 where a budget chooses nothing.
    `share`: of the values that take longest to make for their bytes so many are offered as the link can move in so many
    percent of the forward pass; 0 for none. `charged`: percent of a move that plans are charged for. `cost`: in which
    time is told, as `rules/costs/cost.py` names it."""

    marked: bool = False
    speed: int = 0
    share: int = 0
    charged: int = 100
    cost: str = "flops"

    @property
    def offers(self) -> bool:
        return self.marked or self.share > 0

    def variants(self) -> list[Offload]:
        """What a budget tries beside what is marked alone."""
        return [replace(self, share=share, charged=charged) for share, charged in CHOICES] if self.speed else []

    @property
    def reckoned(self) -> int:
        """The speed that plans are made with."""
        return self.speed * 100 // self.charged


NOTHING_MOVED = Offload()
