"""The effort of a search: the limits of its phases, the gap at which it ends, and the time limit that applies without
numba."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from logging import Logger

from .cut_bounds import CutBounds
from .flows import FlowBounds
from .incumbent import Incumbent
from .kernels.compiled import is_available

LARGE_PROBLEM = 5000
"""Number of operations above which a problem is large. Integer programs, flow bounds and annealing are skipped on large
problems, because each would take minutes. For the same reason, views are copied either all together or not at all, and
the greedy search accepts a slightly worse candidate without trying the next one."""
SMALL_PROBLEM = 700
"""Maximum number of operations of a small problem. On small problems, programs with many cuts, copies in the forward
pass, longer annealing and windows are tried as well; on larger ones they take too long."""
CLOSED_GAP = 0.01
"""The search ends once the gap between plan and bound is at most this value, in percentage points."""
OPEN_GAP = 0.1
"""The search on a small problem continues while the gap is above this value, in percentage points."""

Bounds = CutBounds | FlowBounds


@dataclass(frozen=True)
class Effort:
    """The limits of a search.

    Attributes:
        rounds: The number of rounds of ruin and recreate (`kernels/ruin_recreate.py`) per seed; None to derive it from
            the problem size.
        seeds: The number of annealing runs.
        nodes: The limit of branching nodes of each integer program.
        tries_two_cuts: Whether programs with two cuts are tried.
        tries_many_cuts: Whether the methods for small problems are also tried, such as programs with more than two
            cuts.
    """

    rounds: int | None = None
    seeds: int = 3
    nodes: int = 2000
    tries_two_cuts: bool = True
    tries_many_cuts: bool = True

    @staticmethod
    def brief() -> Effort:
        """Return the limits for use in a compiler pass, with which a search takes seconds."""
        return Effort(rounds=20, seeds=1, nodes=300, tries_two_cuts=False, tries_many_cuts=False)

    @staticmethod
    def long() -> Effort:
        """Return the limits for thorough searches. For a tight budget of a small graph, a search takes ten minutes or
        more, and spends most of this time on the bound."""
        return Effort(seeds=6, nodes=64_000)

    @staticmethod
    def retry() -> Effort:
        """Return the limits for a second search, after a search with the limits `brief` found no plan. On small
        problems, such a search takes one or two seconds."""
        return replace(Effort.brief(), rounds=None, seeds=3)

    def rounds_for(self, operations: int) -> int:
        """Return the rounds of ruin and recreate for a problem with this number of operations."""
        if self.rounds is not None:
            return self.rounds
        return max(0, min(1500, 300_000 // max(1, operations))) if operations <= LARGE_PROBLEM else 0


EFFORTS: Mapping[str, Callable[[], Effort]] = {"brief": Effort.brief, "full": Effort, "long": Effort.long}
"""The efforts by command-line name."""


def is_closed(best: Incumbent, bounds: Bounds, within: float = CLOSED_GAP) -> bool:
    """Return whether the gap between the incumbent and the bound is at most `within` percentage points."""
    return best.percent - bounds.percent <= within


def should_search_on(best: Incumbent, effort: Effort, bounds: Bounds, within: float) -> bool:
    """Return whether to search further: the problem is small, it has a plan, and the gap of this plan is above `within`
    percentage points."""
    small = len(best.problem) <= SMALL_PROBLEM and effort.tries_many_cuts and best.pairs is not None
    return small and not is_closed(best, bounds, within) and not best.should_stop()


PYTHON_SECONDS = 60.0
"""Time limit of a search without numba, in seconds. Plain Python is 25 to 85 times slower, so a search to the end would
take minutes; the best plan so far is used."""
NO_NUMBA_MESSAGE = (
    "numba is not installed: the search for plans runs as plain Python and ends after {seconds:.0f} s with the best "
    "plan so far; with numba it is 25 to 85 times faster: pip install numba"
)


def is_compiled() -> bool:
    """Return whether numba compiles the inner loops of the search."""
    return is_available()


def default_seconds(log: Logger) -> float | None:
    """Return the default time limit of a search in seconds. With numba, return None. Without numba, log a warning, and
    return `PYTHON_SECONDS`."""
    if is_compiled():
        return None
    log.warning("%s", NO_NUMBA_MESSAGE.format(seconds=PYTHON_SECONDS))
    return PYTHON_SECONDS
