"""Segments of a forward pass of which nothing is known but what it computes: cuts where little is alive.

For a number of segments k, the values that the backward pass reads inside of one segment may take at most a k-th of all
of them; among such cuts those are taken at which the fewest bytes are alive. What is kept then is what the cuts hold,
and for a while the inside of the largest segment. Source of the trade-off: T. Chen et al., "Training deep nets with
sublinear memory cost", 2016, where all layers are alike and k is the root of their number; a dynamic program over the
cuts finds them where they are not: N. Kumar, S. Jegelka, "Improved rematerialization via tree decompositions", 2019,
among others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from ..graph import Graph
from ..objective import MOST_SEGMENTS
from ..solvers.repeats import runs_in


@dataclass(frozen=True)
class Cuts:
    """`bounds`: operations at which segments begin, the first and one past the last forward operation among them;
    `found_by`, in a word for remarks.

    `cut_bytes`: what is alive at the cuts, all together; `inside_bytes`: what the backward pass reads inside of the
    largest segment.
    """

    bounds: tuple[int, ...]
    cut_bytes: int
    inside_bytes: int
    found_by: str = "structure"

    def __str__(self) -> str:
        count = len(self.bounds) - 1
        return "all as one segment" if count == 1 else f"{count} segments by {self.found_by}"

    @property
    def score(self) -> int:
        return self.cut_bytes + self.inside_bytes

    def segments(self, graph: Graph) -> dict[int, str]:
        """The segment of each forward operation."""
        found = dict[int, str]()
        for number, (start, end) in enumerate(pairwise(self.bounds)):
            found.update({op: f"segment{number}" for op in range(start, end) if graph.forward[op]})
        return found


UNEVEN = (3 / 4, 2 / 3)
"""Shares of all bytes that may also lie in one segment: as many often lie in the first stage of a network of
convolutions."""


def cuts_by_structure(graph: Graph, most: int = MOST_SEGMENTS) -> list[Cuts]:
    """The best cuts into at most so many segments, each set once, best scores first, then uneven ones."""
    sizes = _Sizes.of(graph)
    even = sizes.cuts_within([sizes.total // count for count in range(2, most + 1)])
    uneven = sizes.cuts_within([int(sizes.total * share) for share in UNEVEN])
    return [*even, *(cuts for cuts in uneven if cuts not in even)]


def cuts_by_blocks(graph: Graph) -> Cuts | None:
    """Each block a segment, where at least half of the forward pass repeats sequences of operations, whatever their
    sizes: blocks begin where the fewest bytes are alive."""
    end = _end(graph)
    operations = [op for op in range(end) if graph.forward[op] and not graph.constants.issuperset(graph.makes[op])]
    numbers = dict[str, int]()
    signatures = [numbers.setdefault(graph.names[op], len(numbers)) for op in operations]
    runs = runs_in(np.array(signatures, np.int64)) if operations else []
    if 2 * sum(run.length for run in runs) < len(operations) or not runs:
        return None
    alive, inside = _alive(graph, end), [0, *accumulate(_inside(graph, end))]
    starts = set[int]()
    for run in runs:
        # All blocks of a run are alike: the second one tells how much is alive in front of its operations.
        places = range(run.start + run.period, run.start + 2 * run.period)
        first = min(places, key=lambda place: alive[operations[place]]) - run.period
        last = min(run.start + run.length, len(operations) - 1)
        starts.update(operations[place] for place in range(first, last + 1, run.period))
    bounds = (0, *sorted(starts - {0}), end)
    largest = max(inside[stop] - inside[start] for start, stop in pairwise(bounds))
    return Cuts(bounds, sum(alive[bound] for bound in bounds[1:-1]), largest, "blocks")


def cut_into(graph: Graph, count: int) -> Cuts | None:
    """So many segments, or as many as there are places to cut; None where there are none.

    The best cuts into fewer, of which the segment with the most inside is cut again until there are enough.
    """
    sizes = _Sizes.of(graph)
    fewer = [cuts for cuts in cuts_by_structure(graph, max(count, 2)) if len(cuts.bounds) - 1 <= count]
    bounds = list(max(fewer, key=lambda cuts: len(cuts.bounds)).bounds) if fewer else [0, sizes.places[-1]]
    while len(bounds) - 1 < count and (place := sizes.best_place_between(bounds)) is not None:
        bounds = sorted([*bounds, place])
    return sizes.cuts_at(bounds) if len(bounds) > 2 else None


def uncut(graph: Graph) -> Cuts | None:
    """The whole forward pass as one segment, where cotangents from outside begin the gradient: all of it may be
    computed again once they are there. None for any other step."""
    first = next((op for op, is_gradient in enumerate(graph.gradient) if is_gradient), -1)
    if first not in graph.needs_cotangent:
        return None
    sizes = _Sizes.of(graph)
    return sizes.cuts_at([0, sizes.places[-1]])


@dataclass(frozen=True)
class _Sizes:
    """At each place where a cut is possible: `places`, the operation in front of which it is; `alive`, the bytes alive
    there that forward operations behind it read; `inside`, the bytes before it that the backward pass reads."""

    places: Sequence[int]
    alive: Sequence[int]
    inside: Sequence[int]
    largest: int

    @property
    def total(self) -> int:
        return self.inside[-1]

    @classmethod
    def of(cls, graph: Graph) -> _Sizes:
        end = _end(graph)
        inside, alive = _inside(graph, end), _alive(graph, end)
        # A cut is best where no more is alive than on either side of it.
        minima = [at for at in range(1, end) if alive[at - 1] >= alive[at] <= alive[at + 1]]
        places = [0, *minima, end]
        summed = [0, *accumulate(inside)]
        return cls(
            places,
            [0, *(alive[at] for at in minima), 0],
            [summed[at] for at in places],
            max(inside, default=0),
        )

    def cuts_within(self, bounds: Iterable[int]) -> list[Cuts]:
        """The cheapest cuts for each of these bounds, each set once, the best score first."""
        found = dict[tuple[int, ...], Cuts]()
        for bound in bounds:
            if (cuts := self.cut(max(bound, self.largest))) is not None:
                found.setdefault(cuts.bounds, cuts)
        return sorted(found.values(), key=lambda cuts: (cuts.score, len(cuts.bounds)))

    def cut(self, bound: int) -> Cuts | None:
        """The cheapest cuts between which the backward pass reads at most `bound` bytes; None where there are none."""
        cost, before = [0], [0]
        window = deque[int]([0])
        for at in range(1, len(self.places)):
            while window and self.inside[at] - self.inside[window[0]] > bound:
                window.popleft()
            if not window:
                window.append(at - 1)
            cost.append(cost[window[0]] + self.alive[at])
            before.append(window[0])
            while window and cost[window[-1]] >= cost[at]:
                window.pop()
            window.append(at)
        chosen = [len(self.places) - 1]
        while chosen[-1]:
            chosen.append(before[chosen[-1]])
        chosen.reverse()
        return self.cuts_at([self.places[at] for at in chosen]) if len(chosen) > 2 else None

    def cuts_at(self, bounds: Sequence[int]) -> Cuts:
        found = [bisect_left(self.places, place) for place in bounds]
        largest = max(self.inside[end] - self.inside[start] for start, end in pairwise(found))
        return Cuts(tuple(bounds), sum(self.alive[at] for at in found), largest)

    def best_place_between(self, bounds: Sequence[int]) -> int | None:
        """Where the segment is cut best that has the most inside, of those that can be cut."""
        found = [bisect_left(self.places, place) for place in bounds]
        spans = sorted(pairwise(found), key=lambda span: self.inside[span[0]] - self.inside[span[1]])
        for start, end in spans:
            if end - start > 1:
                return self.places[min(range(start + 1, end), key=lambda at: self._cost_of_cut(start, at, end))]
        return None

    def _cost_of_cut(self, start: int, at: int, end: int) -> int:
        larger = max(self.inside[at] - self.inside[start], self.inside[end] - self.inside[at])
        return self.alive[at] + larger


def _end(graph: Graph) -> int:
    """One past the last forward operation."""
    return max([op for op in range(len(graph)) if graph.forward[op]], default=-1) + 1


def _inside(graph: Graph, end: int) -> list[int]:
    """For each operation the bytes of its results that gradient operations read."""
    found = [0] * end
    for op in range(end):
        if graph.forward[op]:
            roots = {graph.root[value] for value in graph.makes[op] if graph.gradient_readers[value]}
            found[op] = sum(graph.sizes[root] for root in roots if root not in graph.constants)
    return found


NEAR_THE_END = 0.9
"""Of the forward pass: from there on nothing is missing when only what results need is looked at."""


def _alive(graph: Graph, end: int) -> list[int]:
    """In front of each operation, and at the end, the bytes made before it that primal operations behind it read; all
    forward operations, where the results do not need the forward pass to its end: a gradient without its loss."""
    change = [0] * (end + 1)
    last = dict[int, int]()
    last_primal = max([op for op in range(end) if graph.phases[op] == "primal"], default=-1)
    if last_primal >= NEAR_THE_END * end:
        last_primal = end
    for op in range(end):
        if graph.phases[op] == "primal" or (graph.forward[op] and op > last_primal):
            last.update({graph.root[value]: op for value in graph.reads[op]})
    for root, reader in last.items():
        maker = graph.maker[root]
        if maker >= 0 and root not in graph.constants and maker < reader:
            change[maker + 1] += graph.sizes[root]
            change[reader + 1] -= graph.sizes[root]
    return list(accumulate(change))
