"""Cut a forward pass into segments by data flow alone, where few bytes are live.

For k segments, the residuals of each segment may take at most 1/k of the bytes of all residuals. Among the divisions
within this limit, the one with the fewest live bytes at its cuts is chosen. The peak is about the live bytes at the
cuts plus the residuals of the largest segment. A further candidate has larger segments at the start of the forward pass
than at its end: when the backward pass reaches the early segments, it has freed the values at the last cuts.

Source of the trade-off: T. Chen et al., "Training deep nets with sublinear memory cost", 2016, where all layers are
equal and k is the square root of their number. For unequal layers, a dynamic program finds the cuts: N. Kumar, S.
Jegelka, "Improved rematerialization via tree decompositions", 2019, among others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush
from itertools import accumulate, pairwise

import numpy as np

from ...support.phase import Phase
from ..graph import Graph
from ..solvers.repeats import RepeatedRun, runs_in
from .numbered_segments import numbered_segment

MAX_SEGMENTS = 40
"""Maximum number of segments of a forward pass without names. More segments rarely lower the peak, and cuts are
computed for every number of segments."""


class CutMethod(Enum):
    """The method that places the cuts. Remarks quote the values of `BLOCKS` and `STRUCTURE`.

    Attributes:
        BLOCKS: Cut at the boundaries of repeated blocks.
        STRUCTURE: Cut where few bytes are live.
        WHOLE: Do not cut: the whole forward pass is one segment.
    """

    BLOCKS = "blocks"
    STRUCTURE = "structure"
    WHOLE = "whole"


@dataclass(frozen=True)
class Cuts:
    """Cuts of the forward pass into segments.

    Attributes:
        bounds: The operations at which segments begin, followed by the position after the last forward operation.
        cut_bytes: The live bytes, summed over all cuts.
        inside_bytes: The residual bytes of the segment with the most residual bytes.
        method: The method that placed the cuts.
    """

    bounds: tuple[int, ...]
    cut_bytes: int
    inside_bytes: int
    method: CutMethod = CutMethod.STRUCTURE

    @property
    def segment_count(self) -> int:
        """The number of segments."""
        return len(self.bounds) - 1

    @property
    def score(self) -> int:
        """The estimated peak in bytes, by which cuts are ranked."""
        return self.cut_bytes + self.inside_bytes

    def segments(self, graph: Graph) -> dict[int, str]:
        """Return a map from each forward operation to the name of its segment."""
        segment_of = dict[int, str]()
        for number, (start, end) in enumerate(pairwise(self.bounds)):
            segment_of.update({op: numbered_segment(number) for op in range(start, end) if graph.forward[op]})
        return segment_of


UNEVEN_SHARES = (3 / 4, 2 / 3)
"""Limits for additional, uneven cuts: the share of all residual bytes that one segment may hold. The first stage of a
convolutional network often holds such a share."""


def cuts_by_structure(graph: Graph, most: int = MAX_SEGMENTS) -> list[Cuts]:
    """Return distinct cuts into at most `most` segments. The cuts with the lowest estimated peak come first. Cuts that
    limit each segment to 1/k of the residual bytes follow, then cuts with a larger limit (`UNEVEN_SHARES`), each kind
    by increasing score."""
    places = _CutPlaces.of(graph)
    even = places.cuts_within([places.total // count for count in range(2, most + 1)])
    lowest = places.cuts_with_lowest_peak()
    if lowest is not None and lowest.segment_count <= most:
        even = [lowest, *(cuts for cuts in even if cuts != lowest)]
    uneven = places.cuts_within([int(places.total * share) for share in UNEVEN_SHARES])
    return [*even, *(cuts for cuts in uneven if cuts not in even)]


def cuts_by_blocks(graph: Graph) -> Cuts | None:
    """Return cuts between repeated blocks. Each block becomes a segment, and segments begin where the fewest bytes are
    live.

    The result is None unless repeated sequences of operations make up at least half of the forward pass.
    """
    end = _end(graph)
    operations = [op for op in range(end) if graph.forward[op] and not graph.constants.issuperset(graph.makes[op])]
    runs = _repeated_runs(graph, operations)
    if 2 * sum(run.length for run in runs) < len(operations) or not runs:
        return None
    live = _live_bytes(graph, end)
    residuals_before = [0, *accumulate(_residual_bytes(graph, end))]
    starts = set[int]()
    for run in runs:
        # All blocks of a run are equal, so the live bytes of the second block represent all of them.
        places = range(run.start + run.period, run.start + 2 * run.period)
        first = min(places, key=lambda place: live[operations[place]]) - run.period
        last = min(run.start + run.length, len(operations) - 1)
        starts.update(operations[place] for place in range(first, last + 1, run.period))
    bounds = (0, *sorted(starts - {0}), end)
    largest = max(residuals_before[stop] - residuals_before[start] for start, stop in pairwise(bounds))
    return Cuts(bounds, sum(live[bound] for bound in bounds[1:-1]), largest, CutMethod.BLOCKS)


def _repeated_runs(graph: Graph, operations: Sequence[int]) -> list[RepeatedRun]:
    """Return the parts of `operations` in which a sequence of operation names is repeated, as ranges of indices into
    `operations`."""
    if not operations:
        return []
    numbers = dict[str, int]()
    signatures = [numbers.setdefault(graph.names[op], len(numbers)) for op in operations]
    return runs_in(np.array(signatures, np.int64))


def cut_into(graph: Graph, count: int) -> Cuts | None:
    """Return cuts into `count` segments. If there are too few places to cut, return cuts into fewer segments; if there
    are no places, return None.

    The function starts with the cuts by structure that have the most segments, up to `count`. Then it cuts the segment
    with the most residual bytes until there are `count` segments.
    """
    places = _CutPlaces.of(graph)
    candidates = [cuts for cuts in cuts_by_structure(graph, max(count, 2)) if cuts.segment_count <= count]
    most_cuts = max(candidates, key=lambda cuts: cuts.segment_count, default=None)
    bounds = [0, places.places[-1]] if most_cuts is None else list(most_cuts.bounds)
    while len(bounds) - 1 < count and (place := places.best_place_between(bounds)) is not None:
        bounds = sorted([*bounds, place])
    return places.cuts_at(bounds) if len(bounds) > 2 else None


def single_segment(graph: Graph) -> Cuts | None:
    """Return the whole forward pass as a single segment. This is possible only if the gradient begins with cotangent
    arguments: once they are available, all of the forward pass may be recomputed. Return None for any other step."""
    first_gradient = next((op for op, is_gradient in enumerate(graph.gradient) if is_gradient), -1)
    if first_gradient not in graph.needs_cotangent:
        return None
    places = _CutPlaces.of(graph)
    return places.cuts_at([0, places.places[-1]], CutMethod.WHOLE)


@dataclass(frozen=True)
class _CutPlaces:
    """The places between operations where the forward pass can be cut.

    Attributes:
        places: For each place, the operation after it.
        live: For each place, the live bytes that later forward operations read.
        inside: For each place, the total residual bytes of all operations before it.
        largest: The maximum residual bytes of a single operation.
    """

    places: Sequence[int]
    live: Sequence[int]
    inside: Sequence[int]
    largest: int

    @property
    def total(self) -> int:
        """The residual bytes of the whole forward pass."""
        return self.inside[-1]

    @classmethod
    def of(cls, graph: Graph) -> _CutPlaces:
        end = _end(graph)
        inside = _residual_bytes(graph, end)
        live = _live_bytes(graph, end)
        # The best cuts are at local minima of the live bytes.
        minima = [op for op in range(1, end) if live[op - 1] >= live[op] <= live[op + 1]]
        places = [0, *minima, end]
        summed = [0, *accumulate(inside)]
        return cls(
            places,
            [0, *(live[op] for op in minima), 0],
            [summed[place] for place in places],
            max(inside, default=0),
        )

    def cuts_within(self, bounds: Iterable[int]) -> list[Cuts]:
        """Return the best cuts within each bound on a segment's residual bytes, without duplicates, sorted by score."""
        by_bounds = dict[tuple[int, ...], Cuts]()
        for bound in bounds:
            if (cuts := self.cut(max(bound, self.largest))) is not None:
                by_bounds.setdefault(cuts.bounds, cuts)
        return sorted(by_bounds.values(), key=lambda cuts: (cuts.score, len(cuts.bounds)))

    def cut(self, bound: int) -> Cuts | None:
        """Return the cuts with the fewest live bytes among all cuts into segments of at most `bound` residual bytes;
        None if there are no such cuts.

        This is a dynamic program over the places. It uses a monotone queue and takes linear time.
        """
        cost, previous = [0], [0]
        window = deque[int]([0])
        for index in range(1, len(self.places)):
            while window and self.inside[index] - self.inside[window[0]] > bound:
                window.popleft()
            if not window:
                window.append(index - 1)
            cost.append(cost[window[0]] + self.live[index])
            previous.append(window[0])
            while window and cost[window[-1]] >= cost[index]:
                window.pop()
            window.append(index)
        return self._cuts_along(previous)

    def cuts_with_lowest_peak(self) -> Cuts | None:
        """Return the cuts with the lowest estimated peak, found by bisection; None if no cuts lower the peak.

        The estimate for one segment is its residual bytes plus the live bytes at its start and at all cuts before it.
        The peak is the largest of these sums.
        """
        infeasible, feasible = self.largest - 1, self.total
        best: Cuts | None = None
        while feasible - infeasible > 1:
            limit = (infeasible + feasible) // 2
            if (cuts := self._cuts_below(limit)) is None:
                infeasible = limit
            else:
                feasible, best = limit, cuts
        return best

    def _cuts_below(self, limit: int) -> Cuts | None:
        """Return the cuts with the fewest live bytes among those with an estimated peak of at most `limit` bytes; None
        if there are no such cuts.

        This is a dynamic program over the places. A place that is too far back for one segment is too far back for all
        later segments, so it is removed from the heap.
        """
        cost, previous = [0], [0]
        starts = [(0, 0)]
        for index in range(1, len(self.places)):
            while starts and starts[0][0] + self.inside[index] - self.inside[starts[0][1]] > limit:
                heappop(starts)
            if not starts:
                return None
            start_cost, start = starts[0]
            cost.append(start_cost + self.live[index])
            previous.append(start)
            heappush(starts, (cost[index], index))
        return self._cuts_along(previous)

    def _cuts_along(self, previous: Sequence[int]) -> Cuts | None:
        """Return the cuts on the path from the last place to the first; None if the path has a single segment.

        `previous`: for each place, the start of the segment that ends there.
        """
        path = [len(self.places) - 1]
        while path[-1]:
            path.append(previous[path[-1]])
        return self.cuts_at([self.places[index] for index in reversed(path)]) if len(path) > 2 else None

    def cuts_at(self, bounds: Sequence[int], method: CutMethod = CutMethod.STRUCTURE) -> Cuts:
        """Return the cuts at these bounds, with the method that placed them. Each bound must be one of the places."""
        indices = [bisect_left(self.places, place) for place in bounds]
        largest = max(self.inside[end] - self.inside[start] for start, end in pairwise(indices))
        return Cuts(tuple(bounds), sum(self.live[index] for index in indices), largest, method)

    def best_place_between(self, bounds: Sequence[int]) -> int | None:
        """Return the best place to cut the segment with the most residual bytes among all segments that can be cut;
        None if no segment can be cut."""
        indices = [bisect_left(self.places, place) for place in bounds]
        spans = sorted(pairwise(indices), key=lambda span: self.inside[span[0]] - self.inside[span[1]])
        for start, end in spans:
            if end - start > 1:
                return self.places[min(range(start + 1, end), key=lambda cut: self._cost_of_cut(start, cut, end))]
        return None

    def _cost_of_cut(self, start: int, cut: int, end: int) -> int:
        larger = max(self.inside[cut] - self.inside[start], self.inside[end] - self.inside[cut])
        return self.live[cut] + larger


def _end(graph: Graph) -> int:
    """Return the position after the last forward operation."""
    return max([op for op in range(len(graph)) if graph.forward[op]], default=-1) + 1


def _residual_bytes(graph: Graph, end: int) -> list[int]:
    """Return, for each operation before `end`, the bytes of its results that gradient operations read."""
    bytes_of = [0] * end
    for op in range(end):
        if graph.forward[op]:
            roots = {graph.root[value] for value in graph.makes[op] if graph.gradient_readers[value]}
            bytes_of[op] = sum(graph.sizes[root] for root in roots if root not in graph.constants)
    return bytes_of


NEAR_END_SHARE = 0.9
"""If the last primal operation lies beyond this share of the forward pass, the primal operations are assumed to make up
the whole forward pass. If it lies before this share, the step is probably a gradient without its loss, in which the
forward operations are mostly residual."""


def _live_bytes(graph: Graph, end: int) -> list[int]:
    """Return, for each operation and for `end`, the bytes of the values that are computed before it and read by a
    primal operation at or after it.

    If the last primal operation is before `NEAR_END_SHARE` of the forward pass, as in a step that does not compute its
    loss, all forward operations after it also count as readers.
    """
    change = [0] * (end + 1)
    last = dict[int, int]()
    last_primal = max([op for op in range(end) if graph.phases[op] == Phase.PRIMAL], default=-1)
    if last_primal >= NEAR_END_SHARE * end:
        last_primal = end
    for op in range(end):
        if graph.phases[op] == Phase.PRIMAL or (graph.forward[op] and op > last_primal):
            last.update({graph.root[value]: op for value in graph.reads[op]})
    for root, reader in last.items():
        maker = graph.maker[root]
        if maker >= 0 and root not in graph.constants and maker < reader:
            change[maker + 1] += graph.sizes[root]
            change[reader + 1] -= graph.sizes[root]
    return list(accumulate(change))
