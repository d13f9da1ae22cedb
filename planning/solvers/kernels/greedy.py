"""The greedy that drops what frees most overflow for its cost, until nothing is above the budget.

over = sum over the stages of max(0, peak - budget). A move's score is its extra cost over what it takes from `over`;
all three modes are tried. Candidates wait on a heap by their last known score: the top one is tried again, and carried
out if it is still within (1 + tolerance) of the next, otherwise put back (lazy greedy, Minoux 1978).
"""

from __future__ import annotations

from .board import COST, FULL, HEAP, LOG, MOVES, OVER, Facts, State
from .compiled import compiled
from .drops import AGAIN, CHEAPER, HOLD, drop
from .gaps import list_all, list_gaps
from .moves import LOCAL, undo
from .order import draw, push, sink
from .rows import below, has

NEVER = 1e300


@compiled
def greedy(p: Facts, s: State, tolerance: float, noise: float, forget: bool, limit: int) -> int:
    """Add copies until nothing is above the budget, no move helps, or `limit` trials are spent: trials left.

    `noise`: scores are worse by up to this factor, at random. `forget`: the log is not needed to take all this back.
    """
    list_all(p, s)
    moved = False
    while s.reg[OVER] > 0 and s.reg[FULL] == 0 and limit > 0:
        if s.reg[HEAP] == 0:
            if not moved:
                break
            list_all(p, s)
            moved = False
            continue
        v, t, version = s.heap_value[0], s.heap_stage[0], s.heap_version[0]
        sink(s, s.reg[HEAP])
        s.reg[HEAP] -= 1
        i = p.maker[v]
        if version != s.version[v] or has(s, i, t) or not _is_held(p, s, v, t):
            continue
        limit -= 1
        score, mode = trial(p, s, t, i)
        if score >= NEVER:
            continue
        if noise > 0.0:
            score *= 1.0 + noise * draw(s, 1024) / 1024.0
        if s.reg[HEAP] > 0 and score > (1.0 + tolerance) * s.heap_key[0]:
            push(s, s.reg[HEAP], score, v, t, version)
            s.reg[HEAP] += 1
            continue
        _carry_out(p, s, t, i, mode, forget)
        moved = True
    return limit


@compiled
def _is_held(p: Facts, s: State, v: int, t: int) -> bool:
    """Whether storage v is alive when stage t begins, and used in it or later."""
    maker = p.maker[v]
    k = below(s, maker, t) - 1
    return k >= 0 and s.pool[s.at[2 * p.n + 1 + v] + k] >= t


@compiled
def trial(p: Facts, s: State, t: int, i: int) -> tuple[float, int]:
    """The best score of the move, and its mode; `NEVER` where it frees nothing. All is as before."""
    best, chosen = NEVER, HOLD
    for mode in (HOLD, AGAIN, CHEAPER):
        mark, over, cost = s.reg[LOG], s.reg[OVER], s.reg[COST]
        needy = drop(p, s, t, i, mode)
        less, more = over - s.reg[OVER], s.reg[COST] - cost
        undo(p, s, mark)
        if less > 0 and more / less < best:
            best, chosen = more / less, mode
        if mode == HOLD and not needy:
            break
    return best, chosen


@compiled
def _carry_out(p: Facts, s: State, t: int, i: int, mode: int, forget: bool) -> None:
    mark = s.reg[LOG]
    drop(p, s, t, i, mode)
    s.reg[MOVES] += 1
    for at in range(mark, s.reg[LOG], 3):
        if s.log[at] != LOCAL:
            op = s.log[at + 2]
            for v in range(p.make_start[op], p.make_start[op + 1]):
                list_gaps(p, s, v)
            for r in range(p.read_start[op], p.read_start[op + 1]):
                list_gaps(p, s, p.reads[r])
    if forget:
        s.reg[LOG] = 0
