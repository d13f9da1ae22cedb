"""Which of many places are taken at which steps: all places at once, as the bits of a number for each span of steps.

The spans are those of a binary tree: node 1 is all steps, node n is made of the nodes 2n and 2n + 1, and the leaves are
single steps. Any span of steps is made of few of them.
"""

from __future__ import annotations

from collections.abc import Iterator

_BEFORE = 1
"""The step -1 is one too: before all others."""


class Taken:
    """`throughout`: the places that were taken for all of a node's steps at once; `somewhere`, for some of them."""

    def __init__(self, steps: int):
        """No step is `steps` or later."""
        self._leaves = 1 << (steps + _BEFORE).bit_length()
        self._throughout = [0] * (2 * self._leaves)
        self._somewhere = [0] * (2 * self._leaves)

    def put(self, place: int, first: int, last: int) -> None:
        """From `first` to `last`, both inclusive; where the place is taken already, it stays so."""
        bit = 1 << place
        for node in self._nodes(first, last):
            self._throughout[node] |= bit
            while node and not self._somewhere[node] & bit:
                self._somewhere[node] |= bit
                node >>= 1

    def first_free(self, wanted: int, first: int, last: int) -> int | None:
        """The lowest of the `wanted` places that is free at all these steps. `wanted`: their bits."""
        taken = 0
        for node in self._nodes(first, last):
            taken |= self._somewhere[node]
            while node:
                taken |= self._throughout[node]
                node >>= 1
        free = wanted & ~taken
        return (free & -free).bit_length() - 1 if free else None

    def _nodes(self, first: int, last: int) -> Iterator[int]:
        """The nodes that the steps are made of."""
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
