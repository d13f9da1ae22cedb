"""Adding and removing one copy, and taking it back: what lives longer or shorter, and the bytes of the stages it
touches.

Only the instances of the operation's results around the stage change, and those of its inputs at the stage. The memory
inside of a stage is counted again there, and where an instance ends now or ended before.
"""

from __future__ import annotations

from .blocks import clean, raise_range, soil
from .board import BLOCK, COST, LOG, PAIRS, PENDING, STAMP, Facts, State
from .compiled import compiled
from .rows import below, has, put, take

ADDED, REMOVED, LOCAL = 0, 1, 2
"""Kinds of entries of the log."""


@compiled
def last_use(p: Facts, s: State, v: int, start: int, until: int) -> int:
    """The last stage before `until` in which storage v is used; `start` where there is none after it."""
    found = start
    for at in range(p.user_start[v], p.user_start[v + 1]):
        user = p.users[at]
        if user < until:
            k = below(s, user, until)
            found = max(found, s.pool[s.at[user] + k - 1])
    return found


@compiled
def touch(s: State, t: int) -> None:
    if s.pending[t] == 0:
        s.pending[t] = 1
        s.pending_list[s.reg[PENDING]] = t
        s.reg[PENDING] += 1


@compiled
def note(s: State, kind: int, a: int, b: int) -> None:
    at = s.reg[LOG]
    s.log[at] = kind
    s.log[at + 1] = a
    s.log[at + 2] = b
    s.reg[LOG] = at + 3


@compiled
def add(p: Facts, s: State, t: int, i: int) -> None:
    """Run operation i again in stage t, in which it does not run yet."""
    _add(p, s, t, i)
    note(s, ADDED, t, i)


@compiled
def remove(p: Facts, s: State, t: int, i: int) -> None:
    _remove(p, s, t, i)
    note(s, REMOVED, t, i)


@compiled
def _add(p: Facts, s: State, t: int, i: int) -> None:
    n = p.n
    k = below(s, i, t)
    before = s.pool[s.at[i] + k - 1]
    put(s, i, k, t)
    put(s, n + t, below(s, n + t, i), i)
    for v in range(p.make_start[i], p.make_start[i + 1]):
        row = 2 * n + 1 + v
        until = s.pool[s.at[row] + k - 1]
        if until < t:
            put(s, row, k, t)
            continue
        now = last_use(p, s, v, before, t)
        s.pool[s.at[row] + k - 1] = now
        put(s, row, k, until)
        raise_range(s, now + 1, t, -p.sizes[v])
        touch(s, now)
    for at in range(p.read_start[i], p.read_start[i + 1]):
        u = p.reads[at]
        maker, row = p.maker[u], 2 * n + 1 + u
        j = below(s, maker, t + 1) - 1
        until = s.pool[s.at[row] + j]
        if until < t:
            s.pool[s.at[row] + j] = t
            raise_range(s, until + 1, t, p.sizes[u])
            touch(s, until)
    touch(s, t)
    s.reg[COST] += p.cost[i]
    s.reg[PAIRS] += 1


@compiled
def used_in(p: Facts, s: State, v: int, t: int) -> bool:
    """Whether storage v is used in stage t."""
    for at in range(p.user_start[v], p.user_start[v + 1]):
        if p.users[at] <= t and has(s, p.users[at], t):
            return True
    return False


@compiled
def _remove(p: Facts, s: State, t: int, i: int) -> None:
    n = p.n
    k = below(s, i, t)
    for v in range(p.make_start[i], p.make_start[i + 1]):
        row = 2 * n + 1 + v
        until = s.pool[s.at[row] + k]
        before = s.pool[s.at[row] + k - 1]
        take(s, row, k)
        if until > t or used_in(p, s, v, t):
            s.pool[s.at[row] + k - 1] = until
            raise_range(s, before + 1, t, p.sizes[v])
            touch(s, before)
    take(s, i, k)
    take(s, n + t, below(s, n + t, i))
    for at in range(p.read_start[i], p.read_start[i + 1]):
        u = p.reads[at]
        maker, row = p.maker[u], 2 * n + 1 + u
        j = below(s, maker, t + 1) - 1
        if s.pool[s.at[row] + j] == t:
            now = last_use(p, s, u, s.pool[s.at[maker] + j], t + 1)
            s.pool[s.at[row] + j] = now
            raise_range(s, now + 1, t, -p.sizes[u])
            touch(s, now)
    touch(s, t)
    s.reg[COST] -= p.cost[i]
    s.reg[PAIRS] -= 1


@compiled
def settle(p: Facts, s: State) -> None:
    """Count what was touched: then `OVER` is right."""
    for at in range(s.reg[PENDING]):
        t = s.pending_list[at]
        s.pending[t] = 0
        now = local_bytes(p, s, t)
        if now != s.local[t]:
            note(s, LOCAL, t, s.local[t])
            set_local(s, t, now)
    s.reg[PENDING] = 0
    clean(s)


@compiled
def set_local(s: State, t: int, now: int) -> None:
    s.alive[t] += now - s.local[t]
    s.local[t] = now
    soil(s, t // BLOCK)


@compiled
def undo(p: Facts, s: State, mark: int) -> None:
    """Take back what was done since the log was `mark` long. Nothing is pending, before and after."""
    at = s.reg[LOG]
    while at > mark:
        at -= 3
        kind = s.log[at]
        if kind == LOCAL:
            set_local(s, s.log[at + 1], s.log[at + 2])
        elif kind == ADDED:
            _remove(p, s, s.log[at + 1], s.log[at + 2])
        else:
            _add(p, s, s.log[at + 1], s.log[at + 2])
    for j in range(s.reg[PENDING]):
        s.pending[s.pending_list[j]] = 0
    s.reg[PENDING] = 0
    s.reg[LOG] = mark
    clean(s)


@compiled
def local_bytes(p: Facts, s: State, t: int) -> int:
    """How much more is alive inside of stage t at most than at its start: one look backwards through it."""
    s.reg[STAMP] += 1
    stamp, n = s.reg[STAMP], p.n
    copies, base = s.length[n + t], s.at[n + t]
    alive, most, k = 0, -(1 << 62), copies
    if t == n:
        k -= 1
    while k >= 0:
        i = t if k == copies else s.pool[base + k]
        k -= 1
        during = alive + p.inner[i]
        for v in range(p.make_start[i], p.make_start[i + 1]):
            row = 2 * n + 1 + v
            if s.pool[s.at[row] + below(s, i, t)] > t:
                alive -= p.sizes[v]
            elif s.mark[v] == stamp:
                alive -= p.sizes[v]
            else:
                during += p.sizes[v]
        for at in range(p.read_start[i], p.read_start[i + 1]):
            u = p.reads[at]
            if s.mark[u] == stamp:
                continue
            until = s.pool[s.at[2 * n + 1 + u] + below(s, p.maker[u], t + 1) - 1]
            if until == t:
                s.mark[u] = stamp
                alive += p.sizes[u]
                during += p.sizes[u]
        most = max(most, during)
    if copies == 0 and t == n:
        return 0
    return most - alive
