"""Add and remove one copy, with undo: updates of live ranges, and of the bytes of the affected stages.

Only the instances of the operation's results around the stage change, and the instances of its inputs at the stage. The
bytes inside a stage are recounted in the stage of the copy, and in the stages from and to which the end of an instance
moves.
"""

from __future__ import annotations

from .compiled import kernel
from .rows import below, has, put, take
from .sqrt_blocks import clean, raise_range, soil
from .state import (
    ALIVE,
    BLOCK,
    COPIED,
    COST,
    COSTS,
    INNER,
    IS_PENDING,
    LOCALS,
    LOG,
    LOGGED,
    MAKE_START,
    MAKER,
    PENDING,
    PENDING_LIST,
    READ_START,
    READS,
    ROW_AT,
    ROW_LENGTH,
    SIZES,
    STAMP,
    USER_START,
    USERS,
    VISIT_STAMPS,
    Board,
    N,
)

ADDED, REMOVED, LOCAL = 0, 1, 2
"""Kinds of entries of the log."""


@kernel
def last_use(m: Board, v: int, start: int, until: int) -> int:
    """Return the last stage before `until` in which storage v is used; `start` if there is none after it."""
    latest = start
    for at in range(m[m[USER_START] + v], m[m[USER_START] + v + 1]):
        user = m[m[USERS] + at]
        if user < until:
            k = below(m, user, until)
            latest = max(latest, m[m[m[ROW_AT] + user] + k - 1])
    return latest


@kernel
def touch(m: Board, t: int) -> None:
    """Mark the bytes inside stage t as pending, to be recounted by `settle`."""
    if m[m[IS_PENDING] + t] == 0:
        m[m[IS_PENDING] + t] = 1
        m[m[PENDING_LIST] + m[PENDING]] = t
        m[PENDING] += 1


@kernel
def note(m: Board, kind: int, a: int, b: int) -> None:
    """Append an entry to the log."""
    at = m[LOG]
    m[m[LOGGED] + at] = kind
    m[m[LOGGED] + at + 1] = a
    m[m[LOGGED] + at + 2] = b
    m[LOG] = at + 3


@kernel
def add(m: Board, t: int, i: int) -> None:
    """Run operation i again in stage t, in which it does not run yet."""
    _add(m, t, i)
    note(m, ADDED, t, i)


@kernel
def remove(m: Board, t: int, i: int) -> None:
    """Remove the copy of operation i in stage t."""
    _remove(m, t, i)
    note(m, REMOVED, t, i)


@kernel
def _add(m: Board, t: int, i: int) -> None:
    n = m[N]
    k = below(m, i, t)
    before = m[m[m[ROW_AT] + i] + k - 1]
    put(m, i, k, t)
    put(m, n + t, below(m, n + t, i), i)
    for v in range(m[m[MAKE_START] + i], m[m[MAKE_START] + i + 1]):
        row = 2 * n + 1 + v
        until = m[m[m[ROW_AT] + row] + k - 1]
        if until < t:
            put(m, row, k, t)
            continue
        now = last_use(m, v, before, t)
        m[m[m[ROW_AT] + row] + k - 1] = now
        put(m, row, k, until)
        raise_range(m, now + 1, t, -m[m[SIZES] + v])
        touch(m, now)
    for at in range(m[m[READ_START] + i], m[m[READ_START] + i + 1]):
        u = m[m[READS] + at]
        maker, row = m[m[MAKER] + u], 2 * n + 1 + u
        j = below(m, maker, t + 1) - 1
        until = m[m[m[ROW_AT] + row] + j]
        if until < t:
            m[m[m[ROW_AT] + row] + j] = t
            raise_range(m, until + 1, t, m[m[SIZES] + u])
            touch(m, until)
    touch(m, t)
    m[COST] += m[m[COSTS] + i]
    m[COPIED] += 1


@kernel
def used_in(m: Board, v: int, t: int) -> bool:
    """Return whether storage v is used in stage t."""
    for at in range(m[m[USER_START] + v], m[m[USER_START] + v + 1]):
        if m[m[USERS] + at] <= t and has(m, m[m[USERS] + at], t):
            return True
    return False


@kernel
def _remove(m: Board, t: int, i: int) -> None:
    n = m[N]
    k = below(m, i, t)
    for v in range(m[m[MAKE_START] + i], m[m[MAKE_START] + i + 1]):
        row = 2 * n + 1 + v
        until = m[m[m[ROW_AT] + row] + k]
        before = m[m[m[ROW_AT] + row] + k - 1]
        take(m, row, k)
        if until > t or used_in(m, v, t):
            m[m[m[ROW_AT] + row] + k - 1] = until
            raise_range(m, before + 1, t, m[m[SIZES] + v])
            touch(m, before)
    take(m, i, k)
    take(m, n + t, below(m, n + t, i))
    for at in range(m[m[READ_START] + i], m[m[READ_START] + i + 1]):
        u = m[m[READS] + at]
        maker, row = m[m[MAKER] + u], 2 * n + 1 + u
        j = below(m, maker, t + 1) - 1
        if m[m[m[ROW_AT] + row] + j] == t:
            now = last_use(m, u, m[m[m[ROW_AT] + maker] + j], t + 1)
            m[m[m[ROW_AT] + row] + j] = now
            raise_range(m, now + 1, t, -m[m[SIZES] + u])
            touch(m, now)
    touch(m, t)
    m[COST] -= m[m[COSTS] + i]
    m[COPIED] -= 1


@kernel
def settle(m: Board) -> None:
    """Recount the pending stages; `OVER` is valid afterwards."""
    for at in range(m[PENDING]):
        t = m[m[PENDING_LIST] + at]
        m[m[IS_PENDING] + t] = 0
        now = local_bytes(m, t)
        if now != m[m[LOCALS] + t]:
            note(m, LOCAL, t, m[m[LOCALS] + t])
            set_local(m, t, now)
    m[PENDING] = 0
    clean(m)


@kernel
def set_local(m: Board, t: int, now: int) -> None:
    m[m[ALIVE] + t] += now - m[m[LOCALS] + t]
    m[m[LOCALS] + t] = now
    soil(m, t // BLOCK)


@kernel
def undo(m: Board, mark: int) -> None:
    """Undo the log entries from `mark` on. Nothing may be pending before, and nothing is afterwards."""
    at = m[LOG]
    while at > mark:
        at -= 3
        kind = m[m[LOGGED] + at]
        if kind == LOCAL:
            set_local(m, m[m[LOGGED] + at + 1], m[m[LOGGED] + at + 2])
        elif kind == ADDED:
            _remove(m, m[m[LOGGED] + at + 1], m[m[LOGGED] + at + 2])
        else:
            _add(m, m[m[LOGGED] + at + 1], m[m[LOGGED] + at + 2])
    for j in range(m[PENDING]):
        m[m[IS_PENDING] + m[m[PENDING_LIST] + j]] = 0
    m[PENDING] = 0
    m[LOG] = mark
    clean(m)


@kernel
def local_bytes(m: Board, t: int) -> int:
    """Return the maximum of the live bytes inside stage t relative to its start: one backward scan of the stage."""
    m[STAMP] += 1
    stamp, n = m[STAMP], m[N]
    copies, base = m[m[ROW_LENGTH] + n + t], m[m[ROW_AT] + n + t]
    alive, most, k = 0, -(1 << 62), copies
    if t == n:
        k -= 1
    while k >= 0:
        i = t if k == copies else m[base + k]
        k -= 1
        during = alive + m[m[INNER] + i]
        for v in range(m[m[MAKE_START] + i], m[m[MAKE_START] + i + 1]):
            row = 2 * n + 1 + v
            if m[m[m[ROW_AT] + row] + below(m, i, t)] > t or m[m[VISIT_STAMPS] + v] == stamp:
                alive -= m[m[SIZES] + v]
            else:
                during += m[m[SIZES] + v]
        for at in range(m[m[READ_START] + i], m[m[READ_START] + i + 1]):
            u = m[m[READS] + at]
            if m[m[VISIT_STAMPS] + u] == stamp:
                continue
            until = m[m[m[ROW_AT] + 2 * n + 1 + u] + below(m, m[m[MAKER] + u], t + 1) - 1]
            if until == t:
                m[m[VISIT_STAMPS] + u] = stamp
                alive += m[m[SIZES] + u]
                during += m[m[SIZES] + u]
        most = max(most, during)
    if copies == 0 and t == n:
        return 0
    return most - alive
