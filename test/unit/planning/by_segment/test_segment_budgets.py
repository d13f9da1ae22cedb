"""The values that a segment saves within its budget are optimal among all sets, with HiGHS and without it."""

from __future__ import annotations

from itertools import chain, combinations
from random import Random

import pytest

from recompute.planning.by_segment import keep_alone
from recompute.planning.by_segment import keep_together as together_module
from recompute.planning.by_segment.keep_alone import keep_within, smallest_kept
from recompute.planning.by_segment.keep_together import keep_together
from recompute.planning.by_segment.segment_problem import SegmentProblem

PIECES = 150


def random_segment(seed: int) -> SegmentProblem:
    """Return a random segment, in which some operations have two results and some values must not be kept."""
    dice = Random(seed)
    count = dice.randint(2, 8)
    maker = {v: v - 1 if v % 4 == 3 and dice.random() < 0.5 else v for v in range(count)}
    reads = {op: tuple(sorted(dice.sample(range(op), min(op, dice.randint(0, 2))))) for op in set(maker.values())}
    stays = {v for v in range(count) if dice.random() < 0.15}
    return SegmentProblem(
        needed=frozenset(v for v in range(count) if dice.random() < 0.6),
        sizes={v: dice.choice((4, 8, 12, 20)) for v in range(count)},
        operands={v: reads[maker[v]] for v in range(count) if v not in stays},
        makers=maker,
        operands_outside={op: frozenset[int]() for op in reads},
        work={op: dice.randint(1, 9) for op in reads},
        reasons=dict.fromkeys(stays, "it stays"),
        never_kept=frozenset(v for v in range(count) if v not in stays and dice.random() < 0.05),
    )


def all_kept(problem: SegmentProblem) -> list[tuple[int, int, frozenset[int]]]:
    """Return the bytes and the work of every set of values that could be kept."""
    may = sorted(problem.sizes.keys() - problem.never_kept)
    sets = map(frozenset, chain.from_iterable(combinations(may, n) for n in range(len(may) + 1)))
    matches = [(kept, problem.recomputed_without(kept)) for kept in sets]
    return [
        (problem.bytes(kept), problem.work_of(again), kept)
        for kept, again in matches
        if again <= problem.operands.keys()
    ]


@pytest.mark.parametrize("exact", [True, False])
def test_kept_values_need_the_least_work_within_each_budget(monkeypatch: pytest.MonkeyPatch, exact: bool):
    if not exact:
        monkeypatch.setattr(keep_alone, "is_installed", lambda: False)
    elif not keep_alone.is_installed():
        pytest.skip("highspy is not installed")
    missed = tried = 0
    for seed in range(PIECES):
        item = random_segment(seed)
        sets = all_kept(item)
        least = min((size for size, _, _ in sets), default=None)
        if least is None:
            continue
        assert item.bytes(smallest_kept(item)) == least, seed
        for most in {least - 1, least, least + 6, sum(item.sizes.values()) // 2, sum(item.sizes.values())}:
            kept = keep_within(item, most)
            assert (kept is None) == (most < least), (seed, most)
            if kept is not None:
                best = min(work for size, work, _ in sets if size <= most)
                assert (
                    item.bytes(kept) <= most
                    and item.recomputed_without(kept) <= item.operands.keys()
                    and not kept & item.never_kept
                )
                missed += item.work_of(item.recomputed_without(kept)) != best
                tried += 1
    assert tried > 300
    assert missed == 0 if exact else missed < 0.05 * tried


def test_no_joint_choice_without_highs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(together_module, "is_installed", lambda: False)
    result = keep_together({"one": random_segment(0)}, {"one": 100})
    assert result.kept is None and not result.infeasible


def test_segments_are_chosen_jointly():
    """Each segment keeps one value: `late` can be recomputed only from a value of `early`, which has room for one of
    two."""
    if not together_module.is_installed():
        pytest.skip("highspy is not installed")
    nothing = frozenset[int]()
    makers, outside = {0: 0, 1: 1}, {0: nothing, 1: nothing}
    early = SegmentProblem(frozenset({0}), {0: 8, 1: 8}, {0: (), 1: ()}, makers, outside, {0: 3, 1: 1}, {}, nothing)
    late = SegmentProblem(frozenset({2}), {2: 8}, {2: ()}, {2: 2}, {2: frozenset({1})}, {2: 1}, {}, nothing)
    result = keep_together({"early": early, "late": late}, {"early": 8, "late": 0})
    assert result.kept == {"early": frozenset({1}), "late": frozenset()}
    assert keep_together({"early": early, "late": late}, {"early": 4, "late": 4}).infeasible
