"""Options for offloading: moving values to the host between the forward pass and their use in the backward pass. A plan
file records these options, because the graph of the plan includes the moves."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class MoveOffer:
    """The moves that a planner may choose, and their price.

    Attributes:
        share: The bytes on offer, in percent of the bytes that the link can move during the forward pass.
        charged: The percentage of the time of a move that the plan is charged for.
    """

    share: int
    charged: int


OFFERS = (MoveOffer(50, 1), MoveOffer(100, 1), MoveOffer(150, 1), MoveOffer(10**6, 1))
"""The offers that a search under a budget tries. Moves run concurrently with computation, so they are charged almost
nothing at first; the time that the step waits for them is added at the end."""


@dataclass(frozen=True)
class Offload:
    """Options of offloading.

    Attributes:
        marked: Whether marked values are moved.
        speed: The bandwidth of the link in bytes per second, in one direction; 0 if a budget must not select values to
            move.
        share: As in `MoveOffer`; the values with the highest cost per byte are moved. 0 moves marked values alone.
        charged: As in `MoveOffer`.
        cost: The name of the cost model in `rules/costs/cost.py` in whose unit moves are charged.
    """

    marked: bool = False
    speed: int = 0
    share: int = 0
    charged: int = 100
    cost: str = "flops"

    @property
    def offers(self) -> bool:
        """Whether any value may be moved."""
        return self.marked or self.share > 0

    def variants(self) -> list[Offload]:
        """Return these options once for each of `OFFERS`, which a search under a budget tries in turn; empty without a
        link speed."""
        return [replace(self, share=offer.share, charged=offer.charged) for offer in OFFERS] if self.speed else []

    @property
    def assumed_speed(self) -> int:
        """The bandwidth, in bytes per second, for which plans charge moves."""
        return self.speed * 100 // self.charged


NOTHING_MOVED = Offload()
