"""The live bytes of each stage, and the overflow above the budget, in blocks of 64 stages.

A block that is entirely above or entirely below the budget is updated in one step. Only mixed blocks are scanned, each
once after any number of changes.
"""

from __future__ import annotations

from .compiled import kernel
from .state import (
    ALIVE,
    BLOCK,
    BLOCK_OVER,
    BUDGET,
    DIRTY,
    DIRTY_LIST,
    IS_DIRTY,
    LAZY,
    LEAST,
    MOST,
    OVER,
    OVER_WEIGHT,
    WEIGHT,
    WEIGHTED,
    WEIGHTS,
    Board,
)


@kernel
def raise_range(m: Board, first: int, last: int, change: int) -> None:
    """Add `change` to the live bytes of the stages from first to last, both inclusive."""
    if first > last or change == 0:
        return
    left, right = first // BLOCK, last // BLOCK
    if left == right:
        raise_part(m, left, first, last, change)
        return
    raise_part(m, left, first, (left + 1) * BLOCK - 1, change)
    for block in range(left + 1, right):
        _raise_block(m, block, change)
    raise_part(m, right, right * BLOCK, last, change)


@kernel
def raise_part(m: Board, block: int, first: int, last: int, change: int) -> None:
    for t in range(first, last + 1):
        m[m[ALIVE] + t] += change
    soil(m, block)


@kernel
def soil(m: Board, block: int) -> None:
    """Mark the block as dirty, to be scanned by `clean`."""
    if m[m[IS_DIRTY] + block] == 0:
        m[m[IS_DIRTY] + block] = 1
        m[m[DIRTY_LIST] + m[DIRTY]] = block
        m[DIRTY] += 1


@kernel
def _raise_block(m: Board, block: int, change: int) -> None:
    m[m[LAZY] + block] += change
    if m[m[IS_DIRTY] + block] == 1:
        return
    m[m[MOST] + block] += change
    m[m[LEAST] + block] += change
    m[m[WEIGHTED] + block] += change * m[m[WEIGHTS] + block]
    budget = m[BUDGET]
    if m[m[MOST] + block] <= budget:
        _set_over(m, block, 0, 0)
    elif m[m[LEAST] + block] > budget:
        _set_over(m, block, m[m[WEIGHTED] + block] - budget * m[m[WEIGHTS] + block], m[m[WEIGHTS] + block])
    else:
        soil(m, block)


@kernel
def _set_over(m: Board, block: int, over: int, weight: int) -> None:
    m[OVER] += over - m[m[BLOCK_OVER] + block]
    m[m[BLOCK_OVER] + block] = over
    m[m[OVER_WEIGHT] + block] = weight


@kernel
def clean(m: Board) -> None:
    """Scan the dirty blocks; `OVER` is valid afterwards."""
    for at in range(m[DIRTY]):
        look_through(m, m[m[DIRTY_LIST] + at])
    m[DIRTY] = 0


@kernel
def look_through(m: Board, block: int) -> None:
    """Scan the stages of a block, and recompute its fields."""
    m[m[IS_DIRTY] + block] = 0
    start = block * BLOCK
    allowed = m[BUDGET] - m[m[LAZY] + block]
    most, least = m[m[ALIVE] + start], m[m[ALIVE] + start]
    weighted, weights, over, over_weight = 0, 0, 0, 0
    for t in range(start, start + BLOCK):
        alive, weight = m[m[ALIVE] + t], m[m[WEIGHT] + t]
        most = max(most, alive)
        least = min(least, alive)
        weighted += weight * alive
        weights += weight
        if alive > allowed:
            over += weight * (alive - allowed)
            over_weight += weight
    m[m[MOST] + block] = most + m[m[LAZY] + block]
    m[m[LEAST] + block] = least + m[m[LAZY] + block]
    m[m[WEIGHTED] + block] = weighted + m[m[LAZY] + block] * weights
    m[m[WEIGHTS] + block] = weights
    _set_over(m, block, over, over_weight)


@kernel
def overflow_in(m: Board, first: int, last: int) -> tuple[int, int]:
    """Return the overflow of the stages from first to last, both inclusive, and the sum of the weights of stages above
    the budget."""
    over, weight, t = 0, 0, first
    while t <= last:
        block = t // BLOCK
        if m[m[BLOCK_OVER] + block] == 0:
            t = (block + 1) * BLOCK
        elif t == block * BLOCK and t + BLOCK - 1 <= last:
            over += m[m[BLOCK_OVER] + block]
            weight += m[m[OVER_WEIGHT] + block]
            t += BLOCK
        else:
            stop = min(last, (block + 1) * BLOCK - 1)
            allowed = m[BUDGET] - m[m[LAZY] + block]
            while t <= stop:
                if m[m[ALIVE] + t] > allowed:
                    over += m[m[WEIGHT] + t] * (m[m[ALIVE] + t] - allowed)
                    weight += m[m[WEIGHT] + t]
                t += 1
    return over, weight
