"""Cuts by structure: few bytes alive at the cuts and in the largest segment, whatever the operations are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, combinations, pairwise
from random import Random

import pytest

from recompute.analysis.step.step import Step
from recompute.planning.by_segment import by_structure
from recompute.planning.by_segment.by_structure import UNEVEN_SHARES, Cuts, cut_into, cuts_by_blocks, cuts_by_structure
from recompute.planning.graph import Graph
from recompute.search.choice.attempts import Attempt
from recompute.test.examples import SMALL, classified, inlined

DEPTH = 16


def chain(sizes: list[int]) -> Graph:
    """Return a forward chain with results of these sizes, each read by one gradient operation, the last one first."""
    count = len(sizes)
    names = ("sine",) * count + ("multiply",) * count + ("return",)
    forward = [((op,), (op + 1,)) for op in range(count)]
    backward = [((count - step, count + 1 + (step > 0) * step), (count + 2 + step,)) for step in range(count)]
    reads = (*(r for r, _ in forward), *(r for r, _ in backward), (2 * count + 1,))
    makes = (*(m for _, m in forward), *(m for _, m in backward), ())
    # Values: the argument, the forward results, the cotangent, the gradient results.
    values = 2 * count + 2
    maker = [-1] * values
    for op, entry in enumerate(makes):
        for value in entry:
            maker[value] = op
    return Graph(
        names=names,
        phases=("primal",) * count + ("gradient",) * count + ("update",),
        reads=reads,
        makes=makes,
        flops=(1,) * len(names),
        inner_bytes=(0,) * len(names),
        viewed=(None,) * len(names),
        effects=(None,) * len(names),
        maker=tuple(maker),
        root=tuple(range(values)),
        sizes=(0, *sizes, 0, *([1] * count)),
        constants=frozenset(),
        literals=frozenset(),
        copies=frozenset(),
    )


def lengths(cuts: Cuts) -> list[int]:
    return [end - start for start, end in pairwise(cuts.bounds)]


def test_equal_chain_has_about_square_root_many_segments() -> None:
    best = cuts_by_structure(chain([100] * DEPTH))[0]
    assert 3 <= len(best.bounds) - 1 <= 5
    assert best.score <= 100 * (3 + 5)


def test_early_segments_are_larger_than_late_ones() -> None:
    """The values at late cuts are freed before the backward pass reaches the early segments."""
    sizes = [100] * 30
    lowest, *others = cuts_by_structure(chain(sizes))
    assert lengths(lowest)[0] > lengths(lowest)[-1]
    peaks = [estimated_peak(sizes, cuts.bounds[1:-1]) for cuts in others]
    assert estimated_peak(sizes, lowest.bounds[1:-1]) < min(peaks)


def estimated_peak(sizes: Sequence[int], cuts: Sequence[int]) -> int:
    """Return the estimated peak of a chain: the largest sum of a segment and of the values at the cuts up to its
    start."""
    bounds = [0, *cuts, len(sizes)]
    at_cuts = accumulate((sizes[cut - 1] for cut in cuts), initial=0)
    return max(live + sum(sizes[start:end]) for live, (start, end) in zip(at_cuts, pairwise(bounds), strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_first_cuts_have_the_lowest_estimated_peak(seed: int) -> None:
    """No other set of places where few bytes are live has a lower estimated peak."""
    sizes = [Random(seed * 100 + at).choice([1, 7, 20, 64]) for at in range(10)]
    live = [0, *sizes[:-1], 0, 0]
    places = [at for at in range(1, len(sizes)) if live[at - 1] >= live[at] <= live[at + 1]]
    peaks = [estimated_peak(sizes, cuts) for count in range(len(places) + 1) for cuts in combinations(places, count)]
    first = cuts_by_structure(chain(sizes))[0]
    assert estimated_peak(sizes, first.bounds[1:-1]) == min(peaks)


def test_cuts_are_where_little_is_alive() -> None:
    sizes = [100, 100, 100, 1, 100, 100, 100, 1, 100, 100, 100, 1, 100, 100, 100, 100]
    best = cuts_by_structure(chain(sizes))[1]
    assert {4, 8, 12} <= set(best.bounds)
    assert best.cut_bytes == 3


def test_chain_of_one_operation_has_no_cuts() -> None:
    assert cuts_by_structure(chain([100])) == []
    assert cut_into(chain([100]), 3) is None


def named(graph: Graph, names: list[str]) -> Graph:
    """Return the chain with other operation names in its forward pass."""
    return replace(graph, names=(*names, *graph.names[len(names) :]))


BLOCK = ["dot", "add", "tanh", "sine"]


@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("behind", [0, 2])
def test_blocks_begin_where_the_fewest_bytes_are_alive(before: int, behind: int) -> None:
    """Blocks of different sizes are cut in front of their third operation, where the fewest bytes are alive."""
    sizes = [10 * block * size for block in (8, 4, 2, 1) for size in (4, 1, 3, 4)]
    names = [*["exp", "log", "cos"][:before], *BLOCK * 4, *["sqrt", "cbrt"][:behind]]
    graph = named(chain([7] * before + sizes + [7] * behind), names)
    cuts = cuts_by_blocks(graph)
    assert cuts is not None
    assert cuts.bounds == (0, *(before + 2 + 4 * block for block in range(4)), len(names))
    assert str(Attempt.with_cuts(cuts)) == "5 segments by blocks"
    assert cuts.cut_bytes == 10 * (8 + 4 + 2 + 1)
    assert cuts.inside_bytes == sum(sizes[2:6])


def test_blocks_of_two_kinds_are_all_found() -> None:
    names = [*BLOCK * 4, *["exp", "log"] * 5]
    cuts = cuts_by_blocks(named(chain([4, 3, 2, 1] * 4 + [2, 1] * 5), names))
    assert cuts is not None
    assert cuts.bounds == (0, 4, 8, 12, 16, 18, 20, 22, 24, 26)


def test_rarely_repeated_operations_form_no_blocks() -> None:
    assert cuts_by_blocks(named(chain([1] * 20), [*BLOCK * 2, *map(str, range(12))])) is None
    assert cuts_by_blocks(named(chain([1] * 12), [*["exp"] * 3, *map(str, range(9))])) is None


def test_uneven_cut_may_put_most_bytes_in_one_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An uneven cut is offered if one stage makes three quarters of the bytes: an even one would keep a large value."""
    stages = chain([64, 64, 64, 1, 32, 32, 1])
    assert (0, 4, 7) in [item.bounds for item in cuts_by_structure(stages)]
    monkeypatch.setattr(by_structure, "UNEVEN_SHARES", ())
    assert (0, 4, 7) not in [item.bounds for item in cuts_by_structure(stages)]


@pytest.mark.parametrize("count", [2, 3, 5, 7, 14])
def test_cut_into_gives_requested_segment_count(count: int) -> None:
    cuts = cut_into(chain([100] * DEPTH), count)
    assert cuts is not None and len(cuts.bounds) - 1 == count
    assert max(lengths(cuts)) <= 2 * DEPTH / count + 1


def test_segment_count_is_limited_by_the_places_to_cut() -> None:
    """There are fewer segments than requested if there are not enough places to cut."""
    cuts = cut_into(chain([100] * 4), 9)
    assert cuts is not None and len(cuts.bounds) - 1 == 2


@pytest.mark.parametrize("name", SMALL)
def test_each_forward_operation_is_in_one_segment(name: str) -> None:
    graph = Step.of(classified(inlined(name))).graph
    result = cuts_by_structure(graph)
    even = result[1 : len(result) - len(UNEVEN_SHARES)]
    assert even == sorted(even, key=lambda cuts: cuts.score)
    blocks = cuts_by_blocks(graph)
    for cuts in [*result, *([] if blocks is None else [blocks])]:
        segments = cuts.segments(graph)
        assert list(segments) == [op for op in range(len(graph)) if graph.forward[op]]
        assert len(set(segments.values())) <= len(cuts.bounds) - 1


def test_forward_pass_unused_by_results_is_still_cut() -> None:
    """The cuts are the same if the loss is not returned, or if a result depends only on an early layer."""
    graph = chain([8, 64] * 8)
    wanted = cuts_by_structure(graph)
    for primal in (0, 3):
        phases = ("primal",) * primal + ("residual",) * (DEPTH - primal) + graph.phases[DEPTH:]
        assert cuts_by_structure(replace(graph, phases=phases)) == wanted
