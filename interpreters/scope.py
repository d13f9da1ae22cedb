"""What is visible at a point of a program while its values are numbered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from xdsl.ir import SSAValue

Exchange = tuple[int, int | tuple[str, int]]
"""A channel, and what goes through it: a term, or the head of a term that depends on a region's arguments."""


class Branch(NamedTuple):
    """One of the regions of a conditional, and how many it has."""

    region: int
    regions: int


@dataclass
class Scope:
    """The values of this region, then those of the regions around it; and the state.

    `entry` stands for one execution of the region: it is the state at its start. `place` stands for the device that
    runs it. `kept`: terms that have to occur, in the order of their first occurrence. `risks`: terms for what runs and
    may fail or not end; `ran`: the operations behind them, and whether the effects before
    them count. `exchanges`: the channel of each operation that has one, and
    what it exchanges. `literal`: the meaning of the region is unknown, so that everything in it counts, and in this
    order. `is_alike`: all devices come here, equally often and in the same order. `chosen`: the branches around, as the
    term that decides and the region that runs; only tier 2 looks at them.
    """

    depth: int
    state: int
    entry: int
    place: int
    around: Scope | None = None
    literal: bool = False
    is_alike: bool = True
    values: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    kept: dict[int, None] = field(default_factory=dict[int, None])
    risks: dict[int, None] = field(default_factory=dict[int, None])
    ran: dict[int, bool] = field(default_factory=dict[int, bool])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    chosen: dict[int, Branch] = field(default_factory=dict[int, Branch])

    def find(self, value: SSAValue) -> int | None:
        scope: Scope | None = self
        while scope is not None:
            if (number := scope.values.get(value)) is not None:
                return number
            scope = scope.around
        return None

    def within(self) -> Scope:
        """For operations that run where they stand, and see what is around them."""
        return replace(self, around=self, values={})

    def called(self, state: int) -> Scope:
        """For the body of a function, which sees nothing of its caller."""
        return replace(self, state=state, around=None, values={})


class Outcome(NamedTuple):
    """Terms: of what a function returns, of the state when it returns, of what has to occur besides, of what runs and
    may fail or not end; and the exchanges over channels."""

    results: tuple[int, ...]
    state: int
    kept: frozenset[int]
    risks: frozenset[int]
    exchanges: tuple[Exchange, ...]
