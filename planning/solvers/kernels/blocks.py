"""Bytes alive in each stage, and how far they are above the budget, in blocks of 64 stages.

A block that is wholly above the budget or wholly below it takes a change in one step; only mixed ones are looked
through, and each once however many changes it has seen.
"""

from __future__ import annotations

from .board import BLOCK, BUDGET, DIRTY, OVER, State
from .compiled import compiled


@compiled
def raise_range(s: State, first: int, last: int, change: int) -> None:
    """Add to what is alive in the stages from first to last, both included."""
    if first > last or change == 0:
        return
    left, right = first // BLOCK, last // BLOCK
    if left == right:
        raise_part(s, left, first, last, change)
        return
    raise_part(s, left, first, (left + 1) * BLOCK - 1, change)
    for block in range(left + 1, right):
        _raise_block(s, block, change)
    raise_part(s, right, right * BLOCK, last, change)


@compiled
def raise_part(s: State, block: int, first: int, last: int, change: int) -> None:
    for t in range(first, last + 1):
        s.alive[t] += change
    soil(s, block)


@compiled
def soil(s: State, block: int) -> None:
    """Note that the block is to be looked through."""
    if s.dirty[block] == 0:
        s.dirty[block] = 1
        s.dirty_list[s.reg[DIRTY]] = block
        s.reg[DIRTY] += 1


@compiled
def _raise_block(s: State, block: int, change: int) -> None:
    s.lazy[block] += change
    if s.dirty[block] == 1:
        return
    s.most[block] += change
    s.least[block] += change
    s.weighted[block] += change * s.weights[block]
    budget = s.reg[BUDGET]
    if s.most[block] <= budget:
        _set_over(s, block, 0, 0)
    elif s.least[block] > budget:
        _set_over(s, block, s.weighted[block] - budget * s.weights[block], s.weights[block])
    else:
        soil(s, block)


@compiled
def _set_over(s: State, block: int, over: int, weight: int) -> None:
    s.reg[OVER] += over - s.over[block]
    s.over[block] = over
    s.over_weight[block] = weight


@compiled
def clean(s: State) -> None:
    """Look through what was noted: then `OVER` is right."""
    for at in range(s.reg[DIRTY]):
        look_through(s, s.dirty_list[at])
    s.reg[DIRTY] = 0


@compiled
def look_through(s: State, block: int) -> None:
    s.dirty[block] = 0
    start = block * BLOCK
    allowed = s.reg[BUDGET] - s.lazy[block]
    most, least = s.alive[start], s.alive[start]
    weighted, weights, over, over_weight = 0, 0, 0, 0
    for t in range(start, start + BLOCK):
        alive, weight = s.alive[t], s.weight[t]
        most = max(most, alive)
        least = min(least, alive)
        weighted += weight * alive
        weights += weight
        if alive > allowed:
            over += weight * (alive - allowed)
            over_weight += weight
    s.most[block] = most + s.lazy[block]
    s.least[block] = least + s.lazy[block]
    s.weighted[block] = weighted + s.lazy[block] * weights
    s.weights[block] = weights
    _set_over(s, block, over, over_weight)


@compiled
def overflow_in(s: State, first: int, last: int) -> tuple[int, int]:
    """How far the stages from first to last, both included, are above the budget: the sum, and their weights."""
    over, weight, t = 0, 0, first
    while t <= last:
        block = t // BLOCK
        if s.over[block] == 0:
            t = (block + 1) * BLOCK
        elif t == block * BLOCK and t + BLOCK - 1 <= last:
            over += s.over[block]
            weight += s.over_weight[block]
            t += BLOCK
        else:
            stop = min(last, (block + 1) * BLOCK - 1)
            allowed = s.reg[BUDGET] - s.lazy[block]
            while t <= stop:
                if s.alive[t] > allowed:
                    over += s.weight[t] * (s.alive[t] - allowed)
                    weight += s.weight[t]
                t += 1
    return over, weight
