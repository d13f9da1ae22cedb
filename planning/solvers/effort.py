"""How much work a search does, and when it has done enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from .cut_bounds import CutBounds
from .flows import FlowBounds
from .incumbent import Incumbent

INTEGER = 5000
"""Up to so many operations cuts are solved as integer programs, and plans are annealed."""
SMALL = 700
"""Up to so many operations are small: many cuts at once, copies in the forward pass, longer anneals, windows."""
CLOSED = 0.01
"""Points between plan and bound at which nobody looks further."""
OPEN = 0.1
"""Points from which on small problems are searched once more."""

Bounds = CutBounds | FlowBounds


@dataclass(frozen=True)
class Effort:
    """How much work: `rounds` of ruin and recreate for each of the `seeds`; None for what suits the size. `nodes` of
    each integer program. `pairs`: whether two cuts at once are tried, `many`: and more, on small problems."""

    rounds: int | None = None
    seeds: int = 3
    nodes: int = 2000
    pairs: bool = True
    many: bool = True

    @staticmethod
    def brief() -> Effort:
        """For a compiler's pass: seconds, not a minute."""
        return Effort(rounds=20, seeds=1, nodes=300, pairs=False, many=False)

    @staticmethod
    def long() -> Effort:
        """For who wants to know: ten minutes and more on deep budgets of small graphs, most of them for the proof."""
        return Effort(seeds=6, nodes=64_000)

    @staticmethod
    def once_more() -> Effort:
        """Where that found nothing: as much ruin and recreate as suits the size, a second or two up to `SMALL`."""
        return replace(Effort.brief(), rounds=None, seeds=3)

    def rounds_for(self, operations: int) -> int:
        if self.rounds is not None:
            return self.rounds
        return max(0, min(1500, 300_000 // max(1, operations))) if operations <= INTEGER else 0


EFFORTS: Mapping[str, Callable[[], Effort]] = {"brief": Effort.brief, "full": Effort, "long": Effort.long}
"""By the names of the command line."""


def closed(best: Incumbent, bounds: Bounds, within: float = CLOSED) -> bool:
    return best.percent - bounds.percent <= within


def searched_on(best: Incumbent, effort: Effort, bounds: Bounds, within: float) -> bool:
    """Whether a small problem, for which there is a plan, is worth more work: its gap is above `within`."""
    small = len(best.problem) <= SMALL and effort.many and best.pairs is not None
    return small and not closed(best, bounds, within) and not best.stopped()
