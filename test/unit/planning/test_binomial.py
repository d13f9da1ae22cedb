"""Binomial checkpointing: the least number of repeated iterations, and a schedule that can be executed."""

from __future__ import annotations

from functools import cache

import pytest

from recompute.planning.binomial import Reversal, advances, reversal

GRID = [(n, s) for n in range(1, 61) for s in range(1, 9)]


@cache
def fewest(iterations: int, slots: int) -> int:
    """Return the least number of repeated iterations, by trying every position for the next checkpoint."""
    if iterations == 1:
        return 0
    if slots == 1:
        return iterations * (iterations - 1) // 2
    splits = range(1, iterations)
    return min(at + fewest(at, slots) + fewest(iterations - at, slots - 1) for at in splits)


def executed_order(schedule: Reversal, slots: int) -> tuple[list[int], int]:
    """Execute the schedule; return the order in which iterations run backward, and how many run forward."""
    held, position, run, order = {0: 0}, 0, 0, list[int]()
    for item in schedule.first:
        position, run = position + item.iterations, run + item.iterations
        held[item.slot] = position
    for step in schedule.steps:
        position = held[step.slot]
        assert position == step.at
        for item in step.advances:
            position, run = position + item.iterations, run + item.iterations
            held[item.slot] = position
        run += step.last
        order.append(position + step.last)
    assert max(held) < slots
    return order, run


@pytest.mark.parametrize("slots", range(1, 9))
def test_schedule_repeats_the_fewest_iterations(slots: int) -> None:
    for iterations in range(1, 61):
        schedule = reversal(iterations, slots)
        order, run = executed_order(schedule, slots)
        assert order == list(range(iterations))[::-1]
        assert run == schedule.iterations == advances(iterations, slots) == fewest(iterations, slots)


def test_schedules_of_long_loops_are_fast() -> None:
    schedule = reversal(20_000, 12)
    assert schedule.iterations == advances(20_000, 12) < 8 * 20_000
