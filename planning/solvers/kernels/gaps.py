"""Candidates: a storage that is live between two uses, across stages above the budget.

The move recomputes it in front of the later use. The initial key of a candidate is a lower bound of the cost of its
move per byte of removed overflow: evaluating the candidate can only raise it.
"""

from __future__ import annotations

from .blocks import overflow_in
from .board import (
    COSTS,
    EARLIEST,
    HEAP,
    MAKE_START,
    MAKER,
    MAY_AGAIN,
    OUTPUT,
    ROW_AT,
    ROW_LENGTH,
    SCRATCH,
    SIZES,
    USER_START,
    USERS,
    VERSION,
    Board,
    Keys,
    N,
    space,
)
from .compiled import compiled
from .order import push, sort_keys


@compiled
def list_gaps(m: Board, keys: Keys, v: int) -> None:
    """Push the candidates of a storage onto the heap; its older candidates become invalid."""
    m[m[VERSION] + v] += 1
    maker = m[m[MAKER] + v]
    if m[m[MAY_AGAIN] + maker] == 0 or m[m[SIZES] + v] == 0:
        return
    count = _accesses(m, v)
    first = m[SCRATCH]
    at, before = 1, m[first] // 2
    while at < count:
        b, defines = m[first + at] // 2, m[first + at] % 2 == 0
        while at < count and m[first + at] // 2 == b:
            at += 1
        if not defines and b > before and b >= m[EARLIEST]:
            _offer(m, keys, v, before, b)
        before = b
    if m[m[OUTPUT] + v] == 1 and before < m[N]:
        _offer(m, keys, v, before, m[N])


@compiled
def _accesses(m: Board, v: int) -> int:
    """Write the stages that make the storage (even numbers) or use it (odd numbers) to SCRATCH, sorted. Returns their
    number."""
    maker, count, room = m[m[MAKER] + v], 0, space(m, SCRATCH)
    for k in range(m[m[ROW_LENGTH] + maker]):
        m[m[SCRATCH] + count] = 2 * m[m[m[ROW_AT] + maker] + k]
        count += 1
    for at in range(m[m[USER_START] + v], m[m[USER_START] + v + 1]):
        user = m[m[USERS] + at]
        for k in range(m[m[ROW_LENGTH] + user]):
            if count < room:
                m[m[SCRATCH] + count] = 2 * m[m[m[ROW_AT] + user] + k] + 1
                count += 1
    sort_keys(m, m[SCRATCH], count)
    return count


@compiled
def _offer(m: Board, keys: Keys, v: int, a: int, b: int) -> None:
    last = b if m[m[ROW_LENGTH] + m[N] + b] > 0 else b - 1
    if last <= a:
        return
    over, weight = overflow_in(m, a + 1, last)
    size = m[HEAP]
    if over <= 0 or size >= len(keys):
        return
    maker, freed = m[m[MAKER] + v], 0
    for result in range(m[m[MAKE_START] + maker], m[m[MAKE_START] + maker + 1]):
        freed += m[m[SIZES] + result]
    push(m, keys, size, m[m[COSTS] + maker] / min(freed * weight, over), v, b, m[m[VERSION] + v])
    m[HEAP] = size + 1


@compiled
def list_all(m: Board, keys: Keys) -> None:
    """Push the candidates of all storages onto an empty heap."""
    m[HEAP] = 0
    for v in range(space(m, SIZES)):
        list_gaps(m, keys, v)
