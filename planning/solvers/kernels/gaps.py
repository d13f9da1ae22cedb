"""Candidates: a storage that is held between two uses, over stages that are above the budget.

The move is to compute it again in front of the later use. A candidate's key, before it is tried, is what its move costs
at least per byte of overflow that it takes away: optimistic, so that trying the candidate can only raise it.
"""

from __future__ import annotations

from .blocks import overflow_in
from .board import HEAP, Facts, State
from .compiled import compiled
from .order import push, sort_keys


@compiled
def list_gaps(p: Facts, s: State, v: int) -> None:
    """Put the storage's candidates on the heap; those that it has there do not hold any more."""
    s.version[v] += 1
    maker = p.maker[v]
    if p.again[maker] == 0 or p.sizes[v] == 0:
        return
    count = _accesses(p, s, v)
    keys = s.scratch
    at, before = 1, keys[0] // 2
    while at < count:
        b, defines = keys[at] // 2, keys[at] % 2 == 0
        while at < count and keys[at] // 2 == b:
            at += 1
        if not defines and b > before and b >= p.earliest:
            _offer(p, s, v, before, b)
        before = b
    if p.output[v] == 1 and before < p.n:
        _offer(p, s, v, before, p.n)


@compiled
def _accesses(p: Facts, s: State, v: int) -> int:
    """The stages that make the storage (even numbers) or use it (odd ones), in order, in `scratch`; how many."""
    maker, count, room = p.maker[v], 0, len(s.scratch)
    for k in range(s.length[maker]):
        s.scratch[count] = 2 * s.pool[s.at[maker] + k]
        count += 1
    for at in range(p.user_start[v], p.user_start[v + 1]):
        user = p.users[at]
        for k in range(s.length[user]):
            if count < room:
                s.scratch[count] = 2 * s.pool[s.at[user] + k] + 1
                count += 1
    sort_keys(s.scratch, count)
    return count


@compiled
def _offer(p: Facts, s: State, v: int, a: int, b: int) -> None:
    last = b if s.length[p.n + b] > 0 else b - 1
    if last <= a:
        return
    over, weight = overflow_in(s, a + 1, last)
    size = s.reg[HEAP]
    if over <= 0 or size >= len(s.heap_key):
        return
    maker, freed = p.maker[v], 0
    for one in range(p.make_start[maker], p.make_start[maker + 1]):
        freed += p.sizes[one]
    push(s, size, p.cost[maker] / min(freed * weight, over), v, b, s.version[v])
    s.reg[HEAP] = size + 1


@compiled
def list_all(p: Facts, s: State) -> None:
    """The candidates of all storages."""
    s.reg[HEAP] = 0
    for v in range(len(p.sizes)):
        list_gaps(p, s, v)
