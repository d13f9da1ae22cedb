"""The greedy: add copies, at the least work per byte of removed overflow, until no stage exceeds the budget.

A candidate is a storage that is live between two uses, across stages above the budget; its move recomputes the storage
before the later use. The overflow is the sum over all stages of max(0, peak - budget). The score of a move is its extra
cost divided by its reduction of the overflow, the best of all three modes (`remove_copies.py`). The initial key of a
candidate is a lower bound of its score.

Candidates are on a heap by their last score. The top one is evaluated again, and applied if its score is still within
(1 + tolerance) of the next key, otherwise pushed back (lazy greedy: M. Minoux, "Accelerated greedy algorithms", 1978).
"""

from __future__ import annotations

from .compiled import kernel
from .copy_moves import LOCAL, undo
from .heap import draw, pop, push, sort_keys
from .remove_copies import AGAIN, CHEAPER, HOLD, drop
from .rows import below, has
from .sqrt_blocks import overflow_in
from .state import (
    COST,
    COSTS,
    EARLIEST,
    FULL,
    HEAP,
    HEAP_STAGE,
    HEAP_VALID,
    HEAP_VALUE,
    HEAP_VERSION,
    IS_OUTPUT,
    LOG,
    LOGGED,
    MAKE_START,
    MAKER,
    MAY_AGAIN,
    MOVES,
    OVER,
    READ_START,
    READS,
    ROW_AT,
    ROW_LENGTH,
    SCRATCH,
    SIZES,
    USER_START,
    USERS,
    Board,
    Keys,
    N,
    space,
)


@kernel
def list_gaps(m: Board, keys: Keys, v: int) -> None:
    """Push the candidates of a storage onto the heap, and invalidate its older candidates."""
    m[m[HEAP_VALID] + v] += 1
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
    if m[m[IS_OUTPUT] + v] == 1 and before < m[N]:
        _offer(m, keys, v, before, m[N])


@kernel
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


@kernel
def _offer(m: Board, keys: Keys, v: int, a: int, b: int) -> None:
    last = b if m[m[ROW_LENGTH] + m[N] + b] > 0 else b - 1
    if last <= a:
        return
    over, weight = overflow_in(m, a + 1, last)
    if over <= 0 or m[HEAP] >= len(keys):
        return
    maker, freed = m[m[MAKER] + v], 0
    for result in range(m[m[MAKE_START] + maker], m[m[MAKE_START] + maker + 1]):
        freed += m[m[SIZES] + result]
    push(m, keys, m[m[COSTS] + maker] / min(freed * weight, over), v, b, m[m[HEAP_VALID] + v])


@kernel
def list_all(m: Board, keys: Keys) -> None:
    """Push the candidates of all storages onto an empty heap."""
    m[HEAP] = 0
    for v in range(space(m, SIZES)):
        list_gaps(m, keys, v)


NEVER = 1e300
"""The score of a move that removes no overflow."""


@kernel
def greedy(m: Board, keys: Keys, tolerance: float, noise: float, forget: bool, limit: int) -> int:
    """Add copies until no stage exceeds the budget, no move helps, or `limit` trials are spent. Returns the number of
    trials left.

    `tolerance`: see the docstring of the module. `noise`: the largest share by which scores are increased at random.
    `forget`: discard the log, because nothing will be undone.
    """
    list_all(m, keys)
    moved = False
    while m[OVER] > 0 and m[FULL] == 0 and limit > 0:
        if m[HEAP] == 0:
            if not moved:
                break
            list_all(m, keys)
            moved = False
            continue
        v, t, version = m[m[HEAP_VALUE]], m[m[HEAP_STAGE]], m[m[HEAP_VERSION]]
        pop(m, keys)
        i = m[m[MAKER] + v]
        if version != m[m[HEAP_VALID] + v] or has(m, i, t) or not _is_held(m, v, t):
            continue
        limit -= 1
        score, mode = trial(m, t, i)
        if score >= NEVER:
            continue
        if noise > 0.0:
            score *= 1.0 + noise * draw(m, 1024) / 1024.0
        if m[HEAP] > 0 and score > (1.0 + tolerance) * keys[0]:
            push(m, keys, score, v, t, version)
            continue
        _carry_out(m, keys, t, i, mode, forget)
        moved = True
    return limit


@kernel
def _is_held(m: Board, v: int, t: int) -> bool:
    """Return whether storage v is live at the start of stage t, and used in it or later."""
    maker = m[m[MAKER] + v]
    k = below(m, maker, t) - 1
    return k >= 0 and m[m[m[ROW_AT] + 2 * m[N] + 1 + v] + k] >= t


@kernel
def trial(m: Board, t: int, i: int) -> tuple[float, int]:
    """Return the best score of the move and its mode, without a change of the state."""
    best, chosen = NEVER, HOLD
    for mode in (HOLD, AGAIN, CHEAPER):
        mark, over, cost = m[LOG], m[OVER], m[COST]
        needy = drop(m, t, i, mode)
        less, more = over - m[OVER], m[COST] - cost
        undo(m, mark)
        if less > 0 and more / less < best:
            best, chosen = more / less, mode
        if mode == HOLD and not needy:
            break
    return best, chosen


@kernel
def _carry_out(m: Board, keys: Keys, t: int, i: int, mode: int, forget: bool) -> None:
    mark = m[LOG]
    drop(m, t, i, mode)
    m[MOVES] += 1
    for at in range(mark, m[LOG], 3):
        if m[m[LOGGED] + at] != LOCAL:
            op = m[m[LOGGED] + at + 2]
            for v in range(m[m[MAKE_START] + op], m[m[MAKE_START] + op + 1]):
                list_gaps(m, keys, v)
            for r in range(m[m[READ_START] + op], m[m[READ_START] + op + 1]):
                list_gaps(m, keys, m[m[READS] + r])
    if forget:
        m[LOG] = 0
