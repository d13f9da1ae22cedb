"""Compound moves: an operation runs again in a stage, and its dead inputs live longer or are recomputed too.

- HOLD: dead inputs live longer.
- AGAIN: dead inputs are recomputed, and their dead inputs in turn.
- CHEAPER: a dead input is recomputed if that leaves less overflow than keeping it live.

Reverse delete, which always follows the greedy, removes copies, the most expensive first, while the overflow does not
grow.
"""

from __future__ import annotations

from .compiled import kernel
from .copy_moves import add, remove, settle, undo, used_in
from .heap import sort_keys
from .initial import list_pairs
from .rows import below, has
from .state import (
    CLOSURE,
    COSTS,
    FULL,
    LOG,
    LOGGED,
    MAKE_START,
    MAKER,
    MAY_AGAIN,
    MOVE_OPERATIONS,
    ORDERED,
    OVER,
    READ_START,
    READS,
    ROW_AT,
    SCRATCH,
    SEEN,
    STAMP,
    Board,
    N,
    space,
)

HOLD, AGAIN, CHEAPER = 0, 1, 2
MAX_CLOSURE = 48
"""Maximum number of copies that one move adds: without a limit moves become huge on irregular graphs."""


@kernel
def is_dead(m: Board, u: int, t: int) -> bool:
    """Return whether storage u is dead in stage t and may be recomputed."""
    maker = m[m[MAKER] + u]
    if m[m[MAY_AGAIN] + maker] == 0 or maker >= t:
        return False
    j = below(m, maker, t + 1) - 1
    return m[m[m[ROW_AT] + 2 * m[N] + 1 + u] + j] < t


@kernel
def drop(m: Board, t: int, i: int, mode: int) -> bool:
    """Apply the move and settle it. Returns whether an input was dead, so that other modes may differ."""
    if m[FULL] == 1 or m[LOG] * 4 > 3 * space(m, LOGGED):
        m[FULL] = 1
        return False
    if mode == CHEAPER:
        return _drop_cheaper(m, t, i)
    needy = _close(m, t, i, MAX_CLOSURE if mode == AGAIN else 1)
    for at in range(m[CLOSURE]):
        add(m, t, m[m[MOVE_OPERATIONS] + at])
    settle(m)
    return needy


@kernel
def _close(m: Board, t: int, i: int, most: int) -> bool:
    """Fill MOVE_OPERATIONS with the operation and, up to `most`, the makers of its dead inputs, sorted. Returns whether
    an input was dead."""
    m[STAMP] += 1
    stamp = m[STAMP]
    m[m[MOVE_OPERATIONS]] = i
    m[m[SEEN] + i] = stamp
    count, at, needy = 1, 0, False
    while at < count:
        op = m[m[MOVE_OPERATIONS] + at]
        at += 1
        for r in range(m[m[READ_START] + op], m[m[READ_START] + op + 1]):
            maker = m[m[MAKER] + m[m[READS] + r]]
            if m[m[SEEN] + maker] != stamp and is_dead(m, m[m[READS] + r], t):
                needy = True
                if count < most:
                    m[m[SEEN] + maker] = stamp
                    m[m[MOVE_OPERATIONS] + count] = maker
                    count += 1
    m[CLOSURE] = count
    if count > 1:
        sort_keys(m, m[MOVE_OPERATIONS], count)
    return needy


@kernel
def _drop_cheaper(m: Board, t: int, i: int) -> bool:
    """Try the move in mode CHEAPER: depth first, the inputs of the last added copy first, with at most `MAX_CLOSURE`
    copies."""
    m[m[MOVE_OPERATIONS]] = i
    count, added, first = 1, 0, True
    while count > 0 and added < MAX_CLOSURE:
        count -= 1
        op = m[m[MOVE_OPERATIONS] + count]
        if has(m, op, t):
            continue
        before, mark, base = m[OVER], m[LOG], count
        for r in range(m[m[READ_START] + op], m[m[READ_START] + op + 1]):
            if count + 1 < space(m, MOVE_OPERATIONS) and is_dead(m, m[m[READS] + r], t):
                m[m[MOVE_OPERATIONS] + count] = m[m[MAKER] + m[m[READS] + r]]
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


@kernel
def reverse_delete(m: Board, forget: bool, passes: int) -> None:
    """Remove copies by falling cost, each with the copies that only it used, while the overflow does not grow.

    `forget`: discard the log, because nothing will be undone. `passes`: the maximum number of passes over all copies.
    """
    for _ in range(passes):
        count = _by_cost(m)
        removed = 0
        for at in range(count):
            pair = m[m[ORDERED] + at]
            if m[LOG] * 8 > 7 * space(m, LOGGED):
                break
            t, i = pair // (m[N] + 1), pair % (m[N] + 1)
            if has(m, i, t) and without(m, t, i):
                removed += 1
            if forget:
                m[LOG] = 0
        if removed == 0:
            break


@kernel
def _by_cost(m: Board) -> int:
    """Write the copies to ORDERED, the most expensive first. Returns their number."""
    count = list_pairs(m, ORDERED)
    count = min(count, space(m, SCRATCH))
    most = 0
    for at in range(count):
        most = max(most, m[m[COSTS] + m[m[ORDERED] + at] % (m[N] + 1)])
    unit = most // (1 << 32) + 1
    for at in range(count):
        cost = (most - m[m[COSTS] + m[m[ORDERED] + at] % (m[N] + 1)]) // unit
        m[m[SCRATCH] + at] = cost * (1 << 28) + at
    sort_keys(m, m[SCRATCH], count)
    for at in range(count):
        m[m[SCRATCH] + at] = m[m[ORDERED] + m[m[SCRATCH] + at] % (1 << 28)]
    for at in range(count):
        m[m[ORDERED] + at] = m[m[SCRATCH] + at]
    return count


@kernel
def without(m: Board, t: int, i: int) -> bool:
    """Remove the copy, and the copies that only it used, if the overflow does not grow. Returns whether it was
    removed."""
    mark, over = m[LOG], m[OVER]
    strip(m, t, i)
    settle(m)
    if m[OVER] <= over:
        return True
    undo(m, mark)
    return False


@kernel
def strip(m: Board, t: int, i: int) -> None:
    """Remove the copy, and recursively the copies of its inputs without other uses. The caller must `settle`."""
    stride = m[N] + 1
    m[m[MOVE_OPERATIONS]] = t * stride + i
    m[CLOSURE] = 1
    while m[CLOSURE] > 0:
        m[CLOSURE] -= 1
        stage, op = m[m[MOVE_OPERATIONS] + m[CLOSURE]] // stride, m[m[MOVE_OPERATIONS] + m[CLOSURE]] % stride
        if not has(m, op, stage):
            continue
        remove(m, stage, op)
        for r in range(m[m[READ_START] + op], m[m[READ_START] + op + 1]):
            maker = m[m[MAKER] + m[m[READS] + r]]
            made = m[m[m[ROW_AT] + maker] + below(m, maker, stage + 1) - 1]
            if made > maker and m[CLOSURE] < space(m, MOVE_OPERATIONS) and _is_idle(m, made, maker):
                m[m[MOVE_OPERATIONS] + m[CLOSURE]] = made * stride + maker
                m[CLOSURE] += 1


@kernel
def _is_idle(m: Board, t: int, i: int) -> bool:
    """Return whether the results of operation i in stage t have no uses."""
    k = below(m, i, t)
    for v in range(m[m[MAKE_START] + i], m[m[MAKE_START] + i + 1]):
        until = m[m[m[ROW_AT] + 2 * m[N] + 1 + v] + k]
        if until > t or used_in(m, v, t):
            return False
    return True
