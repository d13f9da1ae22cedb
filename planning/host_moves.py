"""Offloading: which values are moved to the host between the forward pass and their gradient. Stored with a plan, whose
graph includes the moves."""

from __future__ import annotations

from dataclasses import dataclass, replace

CHOICES = ((50, 1), (100, 1), (150, 1), (10**6, 1))
"""The choices that a budget tries: `share` in percent of the bytes that the link can move during the forward pass, and
the percentage of a move that is charged. Moves run concurrently with computation; the remainder is charged at the
end."""


@dataclass(frozen=True)
class Offload:
    """Options of offloading.

    marked: move the marked values.
    speed: bytes per second in one direction; 0 if a budget chooses no values.
    share: offer the values with the highest cost per byte, up to the bytes that the link moves in this percentage of
        the forward pass; 0 for none.
    charged: percentage of a move that plans are charged for.
    cost: the unit of time, by its name in `rules/costs/cost.py`.
    """

    marked: bool = False
    speed: int = 0
    share: int = 0
    charged: int = 100
    cost: str = "flops"

    @property
    def offers(self) -> bool:
        return self.marked or self.share > 0

    def variants(self) -> list[Offload]:
        """Return the choices that a budget tries in addition to marked values alone."""
        return [replace(self, share=share, charged=charged) for share, charged in CHOICES] if self.speed else []

    @property
    def reckoned(self) -> int:
        """The speed that plans assume."""
        return self.speed * 100 // self.charged


NOTHING_MOVED = Offload()
