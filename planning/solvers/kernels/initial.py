"""Initialize a state with the plain step, add copies, and list the copies of a state."""

from __future__ import annotations

from .compiled import kernel
from .copy_moves import add, last_use, local_bytes, settle
from .rows import has
from .sqrt_blocks import look_through
from .state import (
    ALIVE,
    BLOCK,
    BLOCK_OVER,
    BUDGET,
    CLASSES,
    COPIED,
    COST,
    DIRTY,
    FREE,
    FULL,
    IS_OUTPUT,
    IS_PENDING,
    LAZY,
    LOCALS,
    LOG,
    LOGGED,
    MAKER,
    MOST,
    OVER,
    PENDING,
    ROW_AT,
    ROW_LENGTH,
    ROW_POOL,
    ROW_ROOM,
    SIZES,
    TOP,
    WEIGHT,
    Board,
    N,
    space,
)


@kernel
def reset(m: Board, budget: int) -> None:
    """Set the state to the plain step, without copies."""
    n, values = m[N], space(m, SIZES)
    for field in (OVER, COST, COPIED, LOG, PENDING, DIRTY, FULL):
        m[field] = 0
    m[TOP] = m[ROW_POOL]
    m[BUDGET] = budget
    for size_class in range(CLASSES):
        m[m[FREE] + size_class] = -1
    for row in range(2 * n + 1 + values):
        m[m[ROW_LENGTH] + row] = 0
        m[m[ROW_ROOM] + row] = 0
        m[m[ROW_AT] + row] = 0
    for i in range(n):
        _single(m, i, i)
    for t in range(space(m, WEIGHT)):
        m[m[WEIGHT] + t] = 1 if t <= n else 0
        m[m[ALIVE] + t] = 0
    for v in range(values):
        until = n + 1 if m[m[IS_OUTPUT] + v] == 1 else last_use(m, v, m[m[MAKER] + v], n + 1)
        _single(m, 2 * n + 1 + v, until)
        _begin(m, m[m[MAKER] + v] + 1, min(until, n), m[m[SIZES] + v])
    _sum_up(m)


@kernel
def _single(m: Board, row: int, x: int) -> None:
    m[m[ROW_AT] + row] = m[TOP]
    m[m[ROW_ROOM] + row] = 2
    m[TOP] += 2
    m[m[m[ROW_AT] + row]] = x
    m[m[ROW_LENGTH] + row] = 1


@kernel
def _begin(m: Board, first: int, last: int, size: int) -> None:
    """Add the bytes of a live range as differences, which `_sum_up` accumulates."""
    if first <= last:
        m[m[ALIVE] + first] += size
        if last + 1 < space(m, ALIVE):
            m[m[ALIVE] + last + 1] -= size


@kernel
def _sum_up(m: Board) -> None:
    total = 0
    for t in range(space(m, ALIVE)):
        total += m[m[ALIVE] + t]
        m[m[ALIVE] + t] = total
    for t in range(m[N] + 1):
        m[m[IS_PENDING] + t] = 0
        m[m[LOCALS] + t] = local_bytes(m, t)
        m[m[ALIVE] + t] += m[m[LOCALS] + t]
    for block in range(space(m, LAZY)):
        m[m[LAZY] + block] = 0
        m[m[BLOCK_OVER] + block] = 0
        look_through(m, block)


@kernel
def add_all(m: Board, stages: list[int], operations: list[int]) -> None:
    """Add copies. Copies that exist already are skipped."""
    for at in range(len(stages)):
        t, i = stages[at], operations[at]
        if m[FULL] == 0 and (not has(m, i, t)):
            add(m, t, i)
            if m[LOG] * 2 > space(m, LOGGED):
                settle(m)
                m[LOG] = 0
    settle(m)
    m[LOG] = 0


@kernel
def list_pairs(m: Board, part: int) -> int:
    """Write the copies to a part, as t * (n + 1) + i, sorted by stage and operation, until the part is full. Returns
    their number."""
    count, into, room = 0, m[part], space(m, part)
    for t in range(m[N] + 1):
        row = m[N] + t
        for k in range(m[m[ROW_LENGTH] + row]):
            if count < room:
                m[into + count] = t * (m[N] + 1) + m[m[m[ROW_AT] + row] + k]
                count += 1
    return count


@kernel
def set_weight(m: Board, first: int, last: int, weight: int) -> None:
    for t in range(first, last + 1):
        m[m[WEIGHT] + t] = weight
    for block in range(first // BLOCK, last // BLOCK + 1):
        look_through(m, block)


@kernel
def set_budget(m: Board, budget: int) -> None:
    m[BUDGET] = budget
    for block in range(space(m, LAZY)):
        look_through(m, block)


@kernel
def most_bytes(m: Board) -> int:
    """Return the peak in bytes. No stage may be pending."""
    most = 0
    for block in range(m[N] // BLOCK + 1):
        most = max(most, m[m[MOST] + block])
    return most
