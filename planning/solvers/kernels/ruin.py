"""Ruin and recreate: take some of the copies away, let the greedy fill in, delete, and keep what is cheaper.

What goes: the copies of a window of stages, or of operations, of both, of one operation or stage, of two windows of
operations, or some at random. In half of the rounds bytes in some windows of stages weigh more, as if time steps had
prices; in a part of them a random copy is forced first. Acceptance is simulated annealing's (Schrimpf et al., 2000).
"""

from __future__ import annotations

from .board import (
    ALIVE,
    BEST,
    BLOCK,
    BUDGET,
    COST,
    EARLIEST,
    FULL,
    KEPT,
    LAZY,
    LOG,
    LOGGED,
    MAKE_START,
    MAKER,
    MAY_AGAIN,
    MINUS_LOG,
    ORDERED,
    OVER,
    ROW_AT,
    SAVED,
    SIZES,
    USER_START,
    USERS,
    Board,
    Keys,
    N,
    space,
)
from .compiled import compiled
from .delete import reverse_delete
from .drops import AGAIN, drop
from .greedy import greedy
from .moves import remove, settle, undo
from .order import draw
from .rows import below, has
from .start import list_pairs, set_weight

HOTTEST, COLDEST = 0.003, 6e-05
"""Temperatures, in parts of the step's cost."""
TRIALS = 3000
"""Trials of one round's greedy at most, and copies that a round removes at random."""
RANDOM = 60


@compiled
def remember(m: Board) -> None:
    """Make the copies the best that are known."""
    m[BEST] = m[COST]
    m[SAVED] = list_pairs(m, KEPT)


@compiled
def rounds(m: Board, keys: Keys, first: int, last: int, total: int, whole: float) -> int:
    """The rounds from first to last, of total, of one annealing; `whole` is the cost of the step. How many improved.

    The state starts with the copies so far, settled, and ends with others; the best are in `saved`.
    """
    improved = 0
    for one in range(first, last):
        heat = whole * (HOTTEST + (COLDEST - HOTTEST) * one / total)
        m[LOG] = 0
        m[FULL] = 0
        over, cost = m[OVER], m[COST]
        change(m, keys)
        if m[OVER] < over or (
            m[OVER] == over and m[COST] - cost <= heat * m[m[MINUS_LOG] + draw(m, space(m, MINUS_LOG))] / 1e6
        ):
            if m[OVER] == 0 and (m[BEST] < 0 or m[COST] < m[BEST]):
                remember(m)
                improved += 1
        else:
            undo(m, 0)
    return improved


@compiled
def change(m: Board, keys: Keys) -> None:
    _ruin(m)
    settle(m)
    if draw(m, 10) < 4:
        for _ in range(1 + draw(m, 2)):
            _force(m)
    weighted = draw(m, 2) == 1
    if weighted:
        for _ in range(1 + draw(m, 4)):
            start = draw(m, m[N] + 1)
            set_weight(m, start, min(m[N], start + draw(m, m[N] // 4 + 1)), 2 + draw(m, 8))
    noise = draw(m, 3)
    greedy(m, keys, 0.0, 0.0 if noise == 0 else 0.3 if noise == 1 else 1.0, False, TRIALS)
    if weighted:
        set_weight(m, 0, m[N], 1)
    reverse_delete(m, False, 3)


@compiled
def _ruin(m: Board) -> None:
    kind, n = draw(m, 8), m[N]
    count = list_pairs(m, ORDERED)
    if count == 0:
        return
    chosen = m[m[ORDERED] + draw(m, count)]
    width = 1 + draw(m, max(2, n // 6))
    stage = chosen // (n + 1) - draw(m, width + 1)
    op = chosen % (n + 1) - draw(m, width + 1)
    other = draw(m, n)
    share = 20 + draw(m, 180)
    tight = _tight_stage(m)
    near = 1 + width // 8
    removed = 0
    for at in range(count):
        t, i = m[m[ORDERED] + at] // (n + 1), m[m[ORDERED] + at] % (n + 1)
        in_stages, in_ops = stage <= t <= stage + width, op <= i <= op + width
        if kind == 0:
            gone = in_stages
        elif kind == 1:
            gone = in_ops
        elif kind == 2:
            gone = removed < RANDOM and draw(m, 1000) < share
        elif kind == 3:
            gone = in_stages and in_ops
        elif kind == 4:
            gone = t == chosen // (n + 1) or i == chosen % (n + 1)
        elif kind == 5:
            gone = in_ops or other <= i <= other + width
        else:
            gone = tight - near <= t <= tight + near or (kind == 6 and _spans(m, t, i, tight))
        if gone and m[LOG] * 2 < space(m, LOGGED):
            remove(m, t, i)
            removed += 1


@compiled
def _tight_stage(m: Board) -> int:
    """A stage that is within a hundredth of the budget: from a random one on, the next."""
    n, first = m[N], draw(m, m[N] + 1)
    allowed = m[BUDGET] - m[BUDGET] // 100
    for step in range(n + 1):
        t = (first + step) % (n + 1)
        if m[m[ALIVE] + t] + m[m[LAZY] + t // BLOCK] >= allowed:
            return t
    return first


@compiled
def _spans(m: Board, t: int, i: int, stage: int) -> bool:
    """Whether the copy in stage t is alive in the other one."""
    if t > stage:
        return False
    k = below(m, i, t)
    for v in range(m[m[MAKE_START] + i], m[m[MAKE_START] + i + 1]):
        if m[m[m[ROW_AT] + 2 * m[N] + 1 + v] + k] >= stage:
            return True
    return False


@compiled
def _force(m: Board) -> None:
    """Compute a random storage again in front of a random use, with what it needs."""
    v = draw(m, space(m, SIZES))
    i, users = m[m[MAKER] + v], m[m[USER_START] + v + 1] - m[m[USER_START] + v]
    if m[m[MAY_AGAIN] + i] == 0 or users == 0:
        return
    t = m[m[USERS] + (m[m[USER_START] + v] + draw(m, users))]
    if t >= m[EARLIEST] and (not has(m, i, t)):
        drop(m, t, i, AGAIN)
