"""One compound move: an operation runs again in a stage, and what it needs is held longer or runs again too.

Modes. HOLD: inputs that are dead there live longer. AGAIN: they are computed again, and what these need, and so on.
CHEAPER: each is, if that leaves less overflow than holding it.
"""

from __future__ import annotations

from .board import CLOSURE, FULL, LOG, OVER, STAMP, Facts, State
from .compiled import compiled
from .moves import add, settle, undo
from .order import sort_keys
from .rows import below, has

HOLD, AGAIN, CHEAPER = 0, 1, 2
MOST = 48
"""Copies that one move adds at most: without a limit irregular graphs explode."""


@compiled
def is_dead(p: Facts, s: State, u: int, t: int) -> bool:
    """Whether storage u is not there any more in stage t, and could be made again."""
    maker = p.maker[u]
    if p.again[maker] == 0 or maker >= t:
        return False
    j = below(s, maker, t + 1) - 1
    return s.pool[s.at[2 * p.n + 1 + u] + j] < t


@compiled
def drop(p: Facts, s: State, t: int, i: int, mode: int) -> bool:
    """Carry the move out and settle it. Whether another mode could do otherwise: something dead is needed."""
    if s.reg[FULL] == 1 or s.reg[LOG] * 4 > 3 * len(s.log):
        s.reg[FULL] = 1
        return False
    if mode == CHEAPER:
        return _drop_cheaper(p, s, t, i)
    needy = _close(p, s, t, i, MOST if mode == AGAIN else 1)
    for at in range(s.reg[CLOSURE]):
        add(p, s, t, s.closure[at])
    settle(p, s)
    return needy


@compiled
def _close(p: Facts, s: State, t: int, i: int, most: int) -> bool:
    """In `closure` the operation and, up to `most`, what makes its dead inputs, in their order."""
    s.reg[STAMP] += 1
    stamp = s.reg[STAMP]
    s.closure[0] = i
    s.seen[i] = stamp
    count, at, needy = 1, 0, False
    while at < count:
        op = s.closure[at]
        at += 1
        for r in range(p.read_start[op], p.read_start[op + 1]):
            maker = p.maker[p.reads[r]]
            if s.seen[maker] != stamp and is_dead(p, s, p.reads[r], t):
                needy = True
                if count < most:
                    s.seen[maker] = stamp
                    s.closure[count] = maker
                    count += 1
    s.reg[CLOSURE] = count
    if count > 1:
        sort_keys(s.closure, count)
    return needy


@compiled
def _drop_cheaper(p: Facts, s: State, t: int, i: int) -> bool:
    """Depth first, the inputs of the last one added first; never more than `MOST`."""
    s.closure[0] = i
    count, added, first = 1, 0, True
    while count > 0 and added < MOST:
        count -= 1
        op = s.closure[count]
        if has(s, op, t):
            continue
        before, mark, base = s.reg[OVER], s.reg[LOG], count
        for r in range(p.read_start[op], p.read_start[op + 1]):
            if count + 1 < len(s.closure) and is_dead(p, s, p.reads[r], t):
                s.closure[count] = p.maker[p.reads[r]]
                count += 1
        add(p, s, t, op)
        settle(p, s)
        if not first and s.reg[OVER] >= before:
            undo(p, s, mark)
            count = base
        else:
            added += 1
        first = False
    return added > 1
