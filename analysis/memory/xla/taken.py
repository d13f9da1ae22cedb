"""Occupied places over time: a segment tree over the steps, with the set of occupied places as bits at each node.

Node 1 covers all steps, node n covers the steps of nodes 2n and 2n + 1, and the leaves are single steps. Any span of
steps consists of few nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

_BEFORE = 1
"""Number of steps before step 0: step -1 is valid too."""


class OccupiedPlaces:
    """`throughout`: the places that one `put` occupied for all steps of a node; `somewhere`: for some of them."""

    def __init__(self, steps: int):
        """All steps are less than `steps`."""
        self._leaves = 1 << (steps + _BEFORE).bit_length()
        self._throughout = [0] * (2 * self._leaves)
        self._somewhere = [0] * (2 * self._leaves)

    def put(self, place: int, first: int, last: int) -> None:
        """Occupy the place from `first` to `last`, both inclusive. It may be occupied already."""
        bit = 1 << place
        for node in self._nodes(first, last):
            self._throughout[node] |= bit
            while node and not self._somewhere[node] & bit:
                self._somewhere[node] |= bit
                node >>= 1

    def first_free(self, candidates: int, first: int, last: int) -> int | None:
        """The lowest place of the bit set `candidates` that is free at all these steps; None if there is none."""
        taken = 0
        for node in self._nodes(first, last):
            taken |= self._somewhere[node]
            while node:
                taken |= self._throughout[node]
                node >>= 1
        free = candidates & ~taken
        return (free & -free).bit_length() - 1 if free else None

    def _nodes(self, first: int, last: int) -> Iterator[int]:
        """The disjoint nodes that cover exactly these steps."""
        low, high = self._leaves + first + _BEFORE, self._leaves + last + _BEFORE + 1
        while low < high:
            if low & 1:
                yield low
                low += 1
            if high & 1:
                high -= 1
                yield high
            low >>= 1
            high >>= 1
