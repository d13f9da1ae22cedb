"""Sets of stacks that loops may keep: they form a convex curve, and each is the cheapest of all sets at its price."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations

import pytest

from recompute.analysis.copies.loop_cut_curve import Corner, corner_within, corners
from recompute.analysis.copies.loop_cuts import loop_cut
from recompute.analysis.step.order import functions_of
from recompute.analysis.step.stacks import LoopPair, loop_pairs
from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import schedule_of
from recompute.planning.min_cut import min_cut
from recompute.test.examples import FOLDER

TEXT = (FOLDER.parents[1] / "test" / "filecheck" / "transforms" / "loops-keep.mlir").read_text()
SLICE = 4 * 8 * 4 * 6
"""Bytes of each of the three stacks."""
WORK = 2 * 4 * 8 * 8 * 6
COSINE = 4 * 8 * 6
"""FLOPs in all iterations."""


def corners_of_text() -> list[Corner]:
    (function,) = functions_of(parse_module(TEXT))
    return corners(function.body.block, lambda op: True)


def test_corners_range_from_all_stacks_to_the_smallest_set() -> None:
    assert [(entry.kept_bytes, entry.extra_flops) for entry in corners_of_text()] == [
        (3 * SLICE, 0),
        (2 * SLICE, COSINE),
        (SLICE, COSINE + WORK),
    ]


@pytest.mark.parametrize(
    ("keep", "stacks"),
    [("100%", 3), ("70%", 2), ("40%", 1), ("10%", 1), (f"{2 * SLICE}B", 2), (f"{2 * SLICE - 1}B", 1)],
)
def test_corner_keeps_requested_amount_of_stacks(keep: str, stacks: int) -> None:
    (function,) = functions_of(parse_module(TEXT))
    corner = corner_within(function.body.block, lambda op: True, schedule_of(f"keep({keep})"))
    assert corner is not None and corner.kept_bytes == stacks * SLICE


def test_function_without_loops_has_no_corners() -> None:
    (function,) = functions_of(
        parse_module("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }")
    )
    assert corners(function.body.block, lambda op: True) == []
    assert corner_within(function.body.block, lambda op: True, schedule_of("keep(50%)")) is None


@pytest.mark.parametrize("price", [Fraction(1, 100), Fraction(1, 5), Fraction(1), Fraction(3), Fraction(1000)])
def test_loop_cut_is_the_cheapest_set_at_its_price(price: Fraction) -> None:
    (function,) = functions_of(parse_module(TEXT))
    (pair,) = loop_pairs(function.body.block)
    cut = loop_cut(pair, lambda op: True, price)
    assert cut.kept_bytes * price + cut.extra_flops == min(priced(kept, pair, price) for kept in subsets(pair))


def subsets(pair: LoopPair) -> list[frozenset[int]]:
    indices = [stack.index for stack in pair.stacks]
    return [frozenset(some) for count in range(len(indices) + 1) for some in combinations(indices, count)]


def priced(kept: frozenset[int], pair: LoopPair, price: Fraction) -> Fraction:
    """Return the cost of keeping a set of stacks, computed by hand: carry, product of it, and cosine of the product."""
    carry, product, cosine = (stack.index in kept for stack in pair.stacks)
    more = 0 if carry else 1  # The carry cannot be made: it has to be kept.
    return price * (len(kept) + more) * SLICE + (0 if product else WORK) + (0 if cosine else COSINE)


def brute(needed: list[str], needs: dict[str, tuple[str, ...]], cost: dict[str, int], work: dict[str, int]) -> int:
    """Return the minimum cost over all sets of kept values from which the wanted values can be computed."""
    best = None
    for count in range(len(cost) + 1):
        for kept in combinations(sorted(cost), count):
            pending, value = [entry for entry in needed if entry not in kept], set[str]()
            possible = True
            while pending and possible:
                item = pending.pop()
                if item in value:
                    continue
                possible = item in needs
                value.add(item)
                pending.extend(need for need in needs.get(item, ()) if need not in kept)
            if possible:
                total = sum(cost[entry] for entry in kept) + sum(work.get(entry, 0) for entry in value)
                best = total if best is None else min(best, total)
    assert best is not None
    return best


@pytest.mark.parametrize("seed", range(60))
def test_weighted_cuts_have_the_least_cost(seed: int) -> None:
    draw = random.Random(seed)
    names = [f"v{number}" for number in range(7)]
    cost = {name: draw.randrange(0, 9) for name in names}
    work = {name: draw.randrange(0, 9) for name in names}
    needs = {
        name: tuple(draw.sample(names[:at], draw.randrange(0, min(at, 3) + 1)))
        for at, name in enumerate(names)
        if draw.random() < 0.8
    }
    needed = draw.sample(names[3:], 2)
    kept = min_cut(needed, needs, cost, work)
    pending, value = [entry for entry in needed if entry not in kept], set[str]()
    while pending:
        item = pending.pop()
        if item not in value:
            value.add(item)
            pending.extend(need for need in needs[item] if need not in kept)
    total = sum(cost[entry] for entry in kept) + sum(work[entry] for entry in value)
    assert total == brute(needed, needs, cost, work)
