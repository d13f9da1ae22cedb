"""Ruin and recreate: remove some copies, repair with the greedy, run reverse delete, and accept cheaper results.

The ruin removes the copies of a window of stages, of operations, or of both, of one operation or stage, of two windows
of operations, around a stage near the budget, or at random. In half of the rounds the bytes in random windows of stages
have larger weights; in some rounds random copies are added first. Results are accepted as in simulated annealing
(Schrimpf et al., "Record breaking optimization results using the ruin and recreate principle", 2000).
"""

from __future__ import annotations

from .compiled import kernel
from .copy_moves import remove, settle, undo
from .greedy import greedy
from .heap import draw
from .initial import list_pairs, set_weight
from .remove_copies import AGAIN, drop, reverse_delete
from .rows import below, has
from .state import (
    ALIVE,
    BEST,
    BLOCK,
    BUDGET,
    COST,
    EARLIEST,
    FULL,
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
    SAVED_PAIRS,
    SIZES,
    USER_START,
    USERS,
    Board,
    Keys,
    N,
    space,
)

HOTTEST, COLDEST = 0.003, 6e-05
"""The first and the last temperature, as shares of the cost of the step."""
MAX_TRIALS = 3000
"""Maximum number of trials of the greedy in one round."""
MAX_RANDOM = 60
"""Maximum number of copies that are removed at random in one round."""


@kernel
def remember(m: Board) -> None:
    """Record the copies as the best."""
    m[BEST] = m[COST]
    m[SAVED] = list_pairs(m, SAVED_PAIRS)


@kernel
def rounds(m: Board, keys: Keys, first: int, last: int, total: int, whole: float) -> int:
    """Run the rounds from `first` to `last` of an annealing of `total` rounds. Returns the number of improvements.

    `whole`: the cost of the step. The state must be settled. On return it holds the copies of the last round; the best
    copies are in `SAVED_PAIRS`.
    """
    improved = 0
    for round_number in range(first, last):
        heat = whole * (HOTTEST + (COLDEST - HOTTEST) * round_number / total)
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


@kernel
def change(m: Board, keys: Keys) -> None:
    """Run one round: ruin, in some rounds random copies and weights of stages, then greedy and reverse delete."""
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
    greedy(m, keys, 0.0, 0.0 if noise == 0 else 0.3 if noise == 1 else 1.0, False, MAX_TRIALS)
    if weighted:
        set_weight(m, 0, m[N], 1)
    reverse_delete(m, False, 3)


@kernel
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
            gone = removed < MAX_RANDOM and draw(m, 1000) < share
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


@kernel
def _tight_stage(m: Board) -> int:
    """Return the next stage from a random one on whose bytes are at least 99 % of the budget."""
    n, first = m[N], draw(m, m[N] + 1)
    allowed = m[BUDGET] - m[BUDGET] // 100
    for step in range(n + 1):
        t = (first + step) % (n + 1)
        if m[m[ALIVE] + t] + m[m[LAZY] + t // BLOCK] >= allowed:
            return t
    return first


@kernel
def _spans(m: Board, t: int, i: int, stage: int) -> bool:
    """Return whether the copy of operation i in stage t is live in `stage`."""
    if t > stage:
        return False
    k = below(m, i, t)
    for v in range(m[m[MAKE_START] + i], m[m[MAKE_START] + i + 1]):
        if m[m[m[ROW_AT] + 2 * m[N] + 1 + v] + k] >= stage:
            return True
    return False


@kernel
def _force(m: Board) -> None:
    """Add a copy of a random operation before a random use of its result, with its dead inputs."""
    v = draw(m, space(m, SIZES))
    i, users = m[m[MAKER] + v], m[m[USER_START] + v + 1] - m[m[USER_START] + v]
    if m[m[MAY_AGAIN] + i] == 0 or users == 0:
        return
    t = m[m[USERS] + (m[m[USER_START] + v] + draw(m, users))]
    if t >= m[EARLIEST] and (not has(m, i, t)):
        drop(m, t, i, AGAIN)
