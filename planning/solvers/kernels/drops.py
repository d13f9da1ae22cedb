"""One compound move: an operation runs again in a stage, and its dead inputs live longer or are recomputed too.

Modes. HOLD: dead inputs live longer. AGAIN: dead inputs are recomputed, and their dead inputs in turn. CHEAPER: an
input is recomputed if that leaves less overflow than keeping it live.
"""

from __future__ import annotations

from .board import (
    CLOSED,
    CLOSURE,
    FULL,
    LOG,
    LOGGED,
    MAKER,
    MAY_AGAIN,
    OVER,
    READ_START,
    READS,
    ROW_AT,
    SEEN,
    STAMP,
    Board,
    N,
    space,
)
from .compiled import compiled
from .moves import add, settle, undo
from .order import sort_keys
from .rows import below, has

HOLD, AGAIN, CHEAPER = 0, 1, 2
LARGEST = 48
"""Maximum number of copies that one move adds: without a limit moves become huge on irregular graphs."""


@compiled
def is_dead(m: Board, u: int, t: int) -> bool:
    """Whether storage u is dead in stage t, and may be recomputed."""
    maker = m[m[MAKER] + u]
    if m[m[MAY_AGAIN] + maker] == 0 or maker >= t:
        return False
    j = below(m, maker, t + 1) - 1
    return m[m[m[ROW_AT] + 2 * m[N] + 1 + u] + j] < t


@compiled
def drop(m: Board, t: int, i: int, mode: int) -> bool:
    """Apply the move and settle it. Returns whether an input was dead, so that other modes may differ."""
    if m[FULL] == 1 or m[LOG] * 4 > 3 * space(m, LOGGED):
        m[FULL] = 1
        return False
    if mode == CHEAPER:
        return _drop_cheaper(m, t, i)
    needy = _close(m, t, i, LARGEST if mode == AGAIN else 1)
    for at in range(m[CLOSURE]):
        add(m, t, m[m[CLOSED] + at])
    settle(m)
    return needy


@compiled
def _close(m: Board, t: int, i: int, most: int) -> bool:
    """Fill CLOSED with the operation and, up to `most`, the makers of its dead inputs, sorted. Returns whether an input
    was dead."""
    m[STAMP] += 1
    stamp = m[STAMP]
    m[m[CLOSED]] = i
    m[m[SEEN] + i] = stamp
    count, at, needy = 1, 0, False
    while at < count:
        op = m[m[CLOSED] + at]
        at += 1
        for r in range(m[m[READ_START] + op], m[m[READ_START] + op + 1]):
            maker = m[m[MAKER] + m[m[READS] + r]]
            if m[m[SEEN] + maker] != stamp and is_dead(m, m[m[READS] + r], t):
                needy = True
                if count < most:
                    m[m[SEEN] + maker] = stamp
                    m[m[CLOSED] + count] = maker
                    count += 1
    m[CLOSURE] = count
    if count > 1:
        sort_keys(m, m[CLOSED], count)
    return needy


@compiled
def _drop_cheaper(m: Board, t: int, i: int) -> bool:
    """The move in mode CHEAPER: depth first, the inputs of the last added copy first; at most `LARGEST` copies."""
    m[m[CLOSED]] = i
    count, added, first = 1, 0, True
    while count > 0 and added < LARGEST:
        count -= 1
        op = m[m[CLOSED] + count]
        if has(m, op, t):
            continue
        before, mark, base = m[OVER], m[LOG], count
        for r in range(m[m[READ_START] + op], m[m[READ_START] + op + 1]):
            if count + 1 < space(m, CLOSED) and is_dead(m, m[m[READS] + r], t):
                m[m[CLOSED] + count] = m[m[MAKER] + m[m[READS] + r]]
                count += 1
        add(m, t, op)
        settle(m)
        if not first and m[OVER] >= before:
            undo(m, mark)
            count = base
        else:
            added += 1
        first = False
    return added > 1
