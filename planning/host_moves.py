"""Options for offloading, and the cost of moves. Offloading stores values in host memory between the forward pass and
their use in the backward pass. A plan file records these options, because the plan's graph includes the moves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from ..support.units import PICOSECONDS


@dataclass(frozen=True)
class MoveOffer:
    """A limit on the bytes that a planner may move, and the price of a move.

    Attributes:
        share: The bytes that may be moved, in percent of the bytes that the link can move during the forward pass.
        charged: The percentage of the transfer time that is charged to the plan.
    """

    share: int
    charged: int


OFFERS = (MoveOffer(50, 1), MoveOffer(100, 1), MoveOffer(150, 1), MoveOffer(10**6, 1))
"""The offers that a search under a budget tries. Moves run concurrently with computation, so they are charged almost
nothing at first; the time that the step waits for them is added at the end."""


@dataclass(frozen=True)
class Offload:
    """The values that may be moved to host memory, and the price of their moves.

    Attributes:
        marked: Whether marked values are moved.
        speed: The bandwidth of the link in bytes per second, in one direction; 0 if a budget must not select values to
            move.
        share: As in `MoveOffer`; the values with the highest cost per byte are moved. If 0, only marked values are
            moved.
        charged: As in `MoveOffer`.
        cost: The cost model, by its name in `rules/costs/cost.py`. Moves are charged in its unit.
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
        """Return one variant of these options for each entry of `OFFERS`, for a search under a budget. Empty if no link
        speed is given."""
        return [replace(self, share=offer.share, charged=offer.charged) for offer in OFFERS] if self.speed else []

    @property
    def assumed_speed(self) -> int:
        """The link bandwidth, in bytes per second, that planners assume when they charge for a move."""
        return self.speed * 100 // self.charged


NOTHING_MOVED = Offload()


@dataclass(frozen=True)
class Moves:
    """The transfers of a step between device and host.

    Attributes:
        values: The number of offloaded values.
        bytes_to_host: The bytes moved to the host.
        bytes_from_host: The bytes fetched from the host. Each fetch of a value is counted.
    """

    values: int = 0
    bytes_to_host: int = 0
    bytes_from_host: int = 0

    def cost(self, speed: int) -> int:
        """Return the cost of the transfers in picoseconds. Each fetch is charged for both directions.

        `speed`: the transfer speed in bytes per second; 0 if transfers are free.
        """
        return ceil(PICOSECONDS * 2 * self.bytes_from_host / speed) if speed else 0

    def waiting_time(self, speed: int, forward: int, backward: int) -> int:
        """Return the time that computation waits for transfers, in picoseconds.

        Transfers to the host overlap with the forward pass, and transfers from the host overlap with the backward pass.

        Args:
            speed: The transfer speed in bytes per second; 0 if transfers are free.
            forward, backward: The computation times of the two passes, in picoseconds.
        """
        if not speed:
            return 0
        overlaps = (self.bytes_to_host, forward), (self.bytes_from_host, backward)
        waits = (PICOSECONDS * size / speed - work for size, work in overlaps)
        return ceil(sum(max(0.0, wait) for wait in waits))


NO_MOVES = Moves()
