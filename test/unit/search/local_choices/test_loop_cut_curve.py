"""Sets of stacks that loops may save: they form a convex curve, and each is the cheapest of all sets at its price."""

from __future__ import annotations

import random
from collections.abc import Container, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import pytest

from recompute.analysis.step.order import functions_of
from recompute.analysis.step.stacks import LoopPair, loop_pairs
from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import schedule_of
from recompute.planning.min_cut import min_cut
from recompute.search.local_choices.loop_cut_curve import Corner, corner_within, corners
from recompute.search.local_choices.min_loop_cut import loop_cut
from recompute.test.examples import FOLDER

TEXT = (FOLDER.parents[1] / "test" / "filecheck" / "transforms" / "loops-keep.mlir").read_text()
STACK_BYTES = 4 * 8 * 4 * 6
"""Bytes of each of the three stacks: the carry, the product of it with the weights, and the cosine of the product."""
PRODUCT_FLOPS = 2 * 4 * 8 * 8 * 6
"""FLOPs of the products in all iterations."""
COSINE_FLOPS = 4 * 8 * 6
"""FLOPs of the cosines in all iterations."""


def corners_of_text() -> list[Corner]:
    (function,) = functions_of(parse_module(TEXT))
    return corners(function.body.block, lambda op: True)


def test_corners_range_from_all_stacks_to_the_smallest_set() -> None:
    assert [(corner.kept_bytes, corner.extra_flops) for corner in corners_of_text()] == [
        (3 * STACK_BYTES, 0),
        (2 * STACK_BYTES, COSINE_FLOPS),
        (STACK_BYTES, PRODUCT_FLOPS + COSINE_FLOPS),
    ]


@pytest.mark.parametrize(
    ("keep", "stacks"),
    [("100%", 3), ("70%", 2), ("40%", 1), ("10%", 1), (f"{2 * STACK_BYTES}B", 2), (f"{2 * STACK_BYTES - 1}B", 1)],
)
def test_corner_keeps_requested_amount_of_stacks(keep: str, stacks: int) -> None:
    (function,) = functions_of(parse_module(TEXT))
    corner = corner_within(function.body.block, lambda op: True, schedule_of(f"keep({keep})"))
    assert corner is not None and corner.kept_bytes == stacks * STACK_BYTES


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
    assert cut.kept_bytes * price + cut.extra_flops == min(cost_of_keeping(kept, pair, price) for kept in subsets(pair))


def subsets(pair: LoopPair) -> list[frozenset[int]]:
    indices = [stack.index for stack in pair.stacks]
    return [frozenset(kept) for count in range(len(indices) + 1) for kept in combinations(indices, count)]


def cost_of_keeping(kept: frozenset[int], pair: LoopPair, price: Fraction) -> Fraction:
    """Return the cost of keeping a set of stacks, at the price of a byte in FLOPs."""
    keeps_carry, keeps_product, keeps_cosine = (stack.index in kept for stack in pair.stacks)
    stacks = len(kept) if keeps_carry else len(kept) + 1  # The carry cannot be recomputed, so it is always kept.
    extra_flops = (0 if keeps_product else PRODUCT_FLOPS) + (0 if keeps_cosine else COSINE_FLOPS)
    return price * stacks * STACK_BYTES + extra_flops


def recomputed_values(
    needed: Iterable[str], needs: Mapping[str, Sequence[str]], kept: Container[str]
) -> set[str] | None:
    """Return the values to recompute if others are kept; None if one of them cannot be recomputed."""
    pending, recomputed = [value for value in needed if value not in kept], set[str]()
    while pending:
        value = pending.pop()
        if value in recomputed:
            continue
        if value not in needs:
            return None
        recomputed.add(value)
        pending.extend(operand for operand in needs[value] if operand not in kept)
    return recomputed


def least_cost(needed: list[str], needs: dict[str, tuple[str, ...]], cost: dict[str, int], work: dict[str, int]) -> int:
    """Return the minimum cost over all sets of kept values from which the needed values can be computed."""
    subsets_of_values = (kept for count in range(len(cost) + 1) for kept in combinations(sorted(cost), count))
    return min(
        total_cost(kept, recomputed, cost, work)
        for kept in subsets_of_values
        if (recomputed := recomputed_values(needed, needs, kept)) is not None
    )


def total_cost(kept: Iterable[str], recomputed: Iterable[str], cost: dict[str, int], work: dict[str, int]) -> int:
    return sum(cost[value] for value in kept) + sum(work[value] for value in recomputed)


@pytest.mark.parametrize("seed", range(60))
def test_weighted_cuts_have_the_least_cost(seed: int) -> None:
    draw = random.Random(seed)
    names = [f"v{number}" for number in range(7)]
    cost = {name: draw.randrange(0, 9) for name in names}
    work = {name: draw.randrange(0, 9) for name in names}
    needs = {
        name: tuple(draw.sample(names[:index], draw.randrange(0, min(index, 3) + 1)))
        for index, name in enumerate(names)
        if draw.random() < 0.8
    }
    needed = draw.sample(names[3:], 2)
    kept = min_cut(needed, needs, cost, work)
    recomputed = recomputed_values(needed, needs, kept)
    assert recomputed is not None
    assert total_cost(kept, recomputed, cost, work) == least_cost(needed, needs, cost, work)
