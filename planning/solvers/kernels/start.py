"""Filling a state: the plain step, then a set of copies; and reading the copies out of it."""

from __future__ import annotations

from .blocks import look_through
from .board import (
    BLOCK,
    BUDGET,
    CLASSES,
    COST,
    DIRTY,
    FULL,
    LOG,
    OVER,
    PAIRS,
    PENDING,
    TOP,
    Facts,
    State,
)
from .compiled import compiled
from .moves import add, last_use, local_bytes, settle
from .rows import has


@compiled
def reset(p: Facts, s: State, budget: int) -> None:
    """The plain step, without copies."""
    n, m = p.n, len(p.sizes)
    for field in (OVER, COST, PAIRS, LOG, PENDING, DIRTY, TOP, FULL):
        s.reg[field] = 0
    s.reg[BUDGET] = budget
    for size_class in range(CLASSES):
        s.free[size_class] = -1
    for row in range(2 * n + 1 + m):
        s.length[row] = 0
        s.room[row] = 0
        s.at[row] = 0
    for i in range(n):
        _single(s, i, i)
    for t in range(len(s.weight)):
        s.weight[t] = 1 if t <= n else 0
        s.alive[t] = 0
    for v in range(m):
        until = n + 1 if p.output[v] == 1 else last_use(p, s, v, p.maker[v], n + 1)
        _single(s, 2 * n + 1 + v, until)
        _begin(s, p.maker[v] + 1, min(until, n), p.sizes[v])
    _sum_up(p, s)


@compiled
def _single(s: State, row: int, x: int) -> None:
    s.at[row] = s.reg[TOP]
    s.room[row] = 2
    s.reg[TOP] += 2
    s.pool[s.at[row]] = x
    s.length[row] = 1


@compiled
def _begin(s: State, first: int, last: int, size: int) -> None:
    """As a difference, until `_sum_up`."""
    if first <= last:
        s.alive[first] += size
        if last + 1 < len(s.alive):
            s.alive[last + 1] -= size


@compiled
def _sum_up(p: Facts, s: State) -> None:
    total = 0
    for t in range(len(s.alive)):
        total += s.alive[t]
        s.alive[t] = total
    for t in range(p.n + 1):
        s.pending[t] = 0
        s.local[t] = local_bytes(p, s, t)
        s.alive[t] += s.local[t]
    for block in range(len(s.lazy)):
        s.lazy[block] = 0
        s.over[block] = 0
        look_through(s, block)


@compiled
def add_all(p: Facts, s: State, stages: list[int], operations: list[int]) -> None:
    """Add copies, those that are there already left out."""
    for at in range(len(stages)):
        t, i = stages[at], operations[at]
        if s.reg[FULL] == 0 and not has(s, i, t):
            add(p, s, t, i)
            if s.reg[LOG] * 2 > len(s.log):
                settle(p, s)
                s.reg[LOG] = 0
    settle(p, s)
    s.reg[LOG] = 0


@compiled
def list_pairs(p: Facts, s: State, into: list[int]) -> int:
    """Write the copies as t * (n + 1) + i, by stage and operation; how many there are, of those that fit."""
    count = 0
    for t in range(p.n + 1):
        row = p.n + t
        for k in range(s.length[row]):
            if count < len(into):
                into[count] = t * (p.n + 1) + s.pool[s.at[row] + k]
                count += 1
    return count


@compiled
def set_weight(s: State, first: int, last: int, weight: int) -> None:
    for t in range(first, last + 1):
        s.weight[t] = weight
    for block in range(first // BLOCK, last // BLOCK + 1):
        look_through(s, block)


@compiled
def set_budget(s: State, budget: int) -> None:
    s.reg[BUDGET] = budget
    for block in range(len(s.lazy)):
        look_through(s, block)


@compiled
def most_bytes(p: Facts, s: State) -> int:
    """The peak. Nothing is pending."""
    most = 0
    for block in range(p.n // BLOCK + 1):
        most = max(most, s.most[block])
    return most
