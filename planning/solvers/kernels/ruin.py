"""Ruin and recreate: take some of the copies away, let the greedy fill in, delete, and keep what is cheaper.

What goes: the copies of a window of stages, or of operations, of both, of one operation or stage, of two windows of
operations, or some at random. In half of the rounds bytes in some windows of stages weigh more, as if time steps had
prices; in a part of them a random copy is forced first. Acceptance is simulated annealing's (Schrimpf et al., 2000).
"""

from __future__ import annotations

from .board import BEST, COST, FULL, LOG, OVER, SAVED, Facts, State
from .compiled import compiled
from .delete import reverse_delete
from .drops import AGAIN, drop
from .greedy import greedy
from .moves import remove, settle, undo
from .order import draw
from .rows import has
from .start import list_pairs, set_weight

HOTTEST, COLDEST = 0.003, 0.00006
"""Temperatures, in parts of the step's cost."""
TRIALS = 3000
"""Trials of one round's greedy at most, and copies that a round removes at random."""
RANDOM = 60


@compiled
def remember(p: Facts, s: State) -> None:
    """Make the copies the best that are known."""
    s.reg[BEST] = s.reg[COST]
    s.reg[SAVED] = list_pairs(p, s, s.saved)


@compiled
def rounds(p: Facts, s: State, first: int, last: int, total: int, whole: float) -> int:
    """The rounds from first to last, of total, of one annealing; `whole` is the cost of the step. How many improved.

    The state starts with the copies so far, settled, and ends with others; the best are in `saved`.
    """
    improved = 0
    for one in range(first, last):
        heat = whole * (HOTTEST + (COLDEST - HOTTEST) * one / total)
        s.reg[LOG] = 0
        s.reg[FULL] = 0
        over, cost = s.reg[OVER], s.reg[COST]
        change(p, s)
        if s.reg[OVER] < over or (
            s.reg[OVER] == over and s.reg[COST] - cost <= heat * s.minus_log[draw(s, len(s.minus_log))]
        ):
            if s.reg[OVER] == 0 and (s.reg[BEST] < 0 or s.reg[COST] < s.reg[BEST]):
                remember(p, s)
                improved += 1
        else:
            undo(p, s, 0)
    return improved


@compiled
def change(p: Facts, s: State) -> None:
    _ruin(p, s)
    settle(p, s)
    if draw(s, 10) < 4:
        for _ in range(1 + draw(s, 2)):
            _force(p, s)
    weighted = draw(s, 2) == 1
    if weighted:
        for _ in range(1 + draw(s, 4)):
            start = draw(s, p.n + 1)
            set_weight(s, start, min(p.n, start + draw(s, p.n // 4 + 1)), 2 + draw(s, 8))
    noise = draw(s, 3)
    greedy(p, s, 0.0, 0.0 if noise == 0 else 0.3 if noise == 1 else 1.0, False, TRIALS)
    if weighted:
        set_weight(s, 0, p.n, 1)
    reverse_delete(p, s, False, 3)


@compiled
def _ruin(p: Facts, s: State) -> None:
    kind, n = draw(s, 6), p.n
    count = list_pairs(p, s, s.order)
    if count == 0:
        return
    chosen = s.order[draw(s, count)]
    width = 1 + draw(s, max(2, n // 6))
    stage = chosen // (n + 1) - draw(s, width + 1)
    op = chosen % (n + 1) - draw(s, width + 1)
    other = draw(s, n)
    share = 20 + draw(s, 180)
    removed = 0
    for at in range(count):
        t, i = s.order[at] // (n + 1), s.order[at] % (n + 1)
        in_stages, in_ops = stage <= t <= stage + width, op <= i <= op + width
        if kind == 0:
            gone = in_stages
        elif kind == 1:
            gone = in_ops
        elif kind == 2:
            gone = removed < RANDOM and draw(s, 1000) < share
        elif kind == 3:
            gone = in_stages and in_ops
        elif kind == 4:
            gone = t == chosen // (n + 1) or i == chosen % (n + 1)
        else:
            gone = in_ops or other <= i <= other + width
        if gone and s.reg[LOG] * 2 < len(s.log):
            remove(p, s, t, i)
            removed += 1


@compiled
def _force(p: Facts, s: State) -> None:
    """Compute a random storage again in front of a random use, with what it needs."""
    v = draw(s, len(p.sizes))
    i, users = p.maker[v], p.user_start[v + 1] - p.user_start[v]
    if p.again[i] == 0 or users == 0:
        return
    t = p.users[p.user_start[v] + draw(s, users)]
    if t >= p.earliest and not has(s, i, t):
        drop(p, s, t, i, AGAIN)
