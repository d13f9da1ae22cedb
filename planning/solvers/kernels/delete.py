"""Reverse delete: remove copies, the most expensive first, as long as the overflow does not grow. Always needed after
the greedy."""

from __future__ import annotations

from .board import (
    CLOSED,
    CLOSURE,
    COSTS,
    LOG,
    LOGGED,
    MAKE_START,
    MAKER,
    ORDERED,
    OVER,
    READ_START,
    READS,
    ROW_AT,
    SCRATCH,
    Board,
    N,
    space,
)
from .compiled import compiled
from .moves import remove, settle, undo, used_in
from .order import sort_keys
from .rows import below, has
from .start import list_pairs


@compiled
def reverse_delete(m: Board, forget: bool, passes: int) -> None:
    """Remove copies by falling cost, each with the copies that only it used, while `over` does not grow.

    `forget`: discard the log, since no undo is needed. `passes`: maximum number of passes over all copies.
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


@compiled
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


@compiled
def without(m: Board, t: int, i: int) -> bool:
    """Remove the copy, and copies that only it used, if `over` does not grow. Returns whether it was removed."""
    mark, over = m[LOG], m[OVER]
    strip(m, t, i)
    settle(m)
    if m[OVER] <= over:
        return True
    undo(m, mark)
    return False


@compiled
def strip(m: Board, t: int, i: int) -> None:
    """Remove the copy, and recursively the copies of its inputs without other uses. The caller must `settle`."""
    stride = m[N] + 1
    m[m[CLOSED]] = t * stride + i
    m[CLOSURE] = 1
    while m[CLOSURE] > 0:
        m[CLOSURE] -= 1
        stage, op = m[m[CLOSED] + m[CLOSURE]] // stride, m[m[CLOSED] + m[CLOSURE]] % stride
        if not has(m, op, stage):
            continue
        remove(m, stage, op)
        for r in range(m[m[READ_START] + op], m[m[READ_START] + op + 1]):
            maker = m[m[MAKER] + m[m[READS] + r]]
            made = m[m[m[ROW_AT] + maker] + below(m, maker, stage + 1) - 1]
            if made > maker and m[CLOSURE] < space(m, CLOSED) and _is_idle(m, made, maker):
                m[m[CLOSED] + m[CLOSURE]] = made * stride + maker
                m[CLOSURE] += 1


@compiled
def _is_idle(m: Board, t: int, i: int) -> bool:
    """Whether the results of operation i in stage t have no uses."""
    k = below(m, i, t)
    for v in range(m[m[MAKE_START] + i], m[m[MAKE_START] + i + 1]):
        until = m[m[m[ROW_AT] + 2 * m[N] + 1 + v] + k]
        if until > t or used_in(m, v, t):
            return False
    return True
