"""Greedy: apply the move with the least cost per freed overflow, until no stage exceeds the budget.

over = sum over the stages of max(0, peak - budget). The score of a move is its extra cost divided by its reduction of
`over`; all three modes are tried. Candidates are on a heap by their last score: the top one is evaluated again, and
applied if it is still within (1 + tolerance) of the next, otherwise pushed back (lazy greedy, Minoux 1978).
"""

from __future__ import annotations

from .board import (
    COST,
    FULL,
    HEAP,
    HEAP_STAGE,
    HEAP_VALUE,
    HEAP_VERSION,
    LOG,
    LOGGED,
    MAKE_START,
    MAKER,
    MOVES,
    OVER,
    READ_START,
    READS,
    ROW_AT,
    VERSION,
    Board,
    Keys,
    N,
)
from .compiled import compiled
from .drops import AGAIN, CHEAPER, HOLD, drop
from .gaps import list_all, list_gaps
from .moves import LOCAL, undo
from .order import draw, push, sink
from .rows import below, has

NEVER = 1e300


@compiled
def greedy(m: Board, keys: Keys, tolerance: float, noise: float, forget: bool, limit: int) -> int:
    """Add copies until no stage exceeds the budget, no move helps, or `limit` trials are spent. Returns trials left.

    `noise`: scores are increased by up to this factor, at random. `forget`: discard the log, since no undo is needed.
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
        sink(m, keys, m[HEAP])
        m[HEAP] -= 1
        i = m[m[MAKER] + v]
        if version != m[m[VERSION] + v] or has(m, i, t) or not _is_held(m, v, t):
            continue
        limit -= 1
        score, mode = trial(m, t, i)
        if score >= NEVER:
            continue
        if noise > 0.0:
            score *= 1.0 + noise * draw(m, 1024) / 1024.0
        if m[HEAP] > 0 and score > (1.0 + tolerance) * keys[0]:
            push(m, keys, m[HEAP], score, v, t, version)
            m[HEAP] += 1
            continue
        _carry_out(m, keys, t, i, mode, forget)
        moved = True
    return limit


@compiled
def _is_held(m: Board, v: int, t: int) -> bool:
    """Whether storage v is live at the start of stage t, and used in it or later."""
    maker = m[m[MAKER] + v]
    k = below(m, maker, t) - 1
    return k >= 0 and m[m[m[ROW_AT] + 2 * m[N] + 1 + v] + k] >= t


@compiled
def trial(m: Board, t: int, i: int) -> tuple[float, int]:
    """The best score of the move, and its mode; `NEVER` if it frees nothing. Restores the state."""
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


@compiled
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
