"""The values and the state that are visible at a point of a program during value numbering."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from xdsl.ir import SSAValue

Exchange = tuple[int, int | tuple[str, int]]
"""A channel and the exchanged value: a term, or the head of a term that depends on a region's arguments."""


class Branch(NamedTuple):
    """A region of a conditional, by its number, and the number of its regions."""

    region: int
    regions: int


@dataclass
class RegionScope:
    """The values of this region, then those of the regions around it; and the state.

    `entry` identifies one execution of the region: the state at its start. `place` identifies the device that runs it.
    `kept`: terms that must occur, in the order of their first occurrence. `risks`: terms for operations that run and
    may fail or not end; `ran`: these operations, and whether the effects before them matter. `exchanges`: channel and
    exchanged value of each operation with a channel. `literal`: the meaning of the region is unknown, so that all of
    its operations and their order matter. `is_alike`: all devices run the region, equally often and in the same order.
    `chosen`: the enclosing branches, from the deciding term to the region that runs; only tier 2 reads them.
    """

    depth: int
    state: int
    entry: int
    place: int
    around: RegionScope | None = None
    literal: bool = False
    is_alike: bool = True
    values: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    kept: dict[int, None] = field(default_factory=dict[int, None])
    risks: dict[int, None] = field(default_factory=dict[int, None])
    ran: dict[int, bool] = field(default_factory=dict[int, bool])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    chosen: dict[int, Branch] = field(default_factory=dict[int, Branch])

    def find(self, value: SSAValue) -> int | None:
        scope: RegionScope | None = self
        while scope is not None:
            if (number := scope.values.get(value)) is not None:
                return number
            scope = scope.around
        return None

    def within(self) -> RegionScope:
        """Return the scope of operations that run in place and see the values around them."""
        return replace(self, around=self, values={})

    def called(self, state: int) -> RegionScope:
        """Return the scope of a function body, which does not see values of its caller."""
        return replace(self, state=state, around=None, values={})


class FunctionTerms(NamedTuple):
    """Terms of a function: its results, its final state, those that must occur besides, those that run and may fail or
    not end; and the exchanges over channels."""

    results: tuple[int, ...]
    state: int
    kept: frozenset[int]
    risks: frozenset[int]
    exchanges: tuple[Exchange, ...]
