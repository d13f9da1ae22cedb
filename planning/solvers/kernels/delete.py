"""Taking copies away again, the dearest first, as long as nothing gets worse: never to be left out."""

from __future__ import annotations

from .board import CLOSURE, LOG, OVER, Facts, State
from .compiled import compiled
from .moves import remove, settle, undo, used_in
from .order import sort_keys
from .rows import below, has
from .start import list_pairs


@compiled
def reverse_delete(p: Facts, s: State, forget: bool, passes: int) -> None:
    """Remove copies by falling cost, each with the copies that only it used, while `over` does not grow.

    `forget`: the log is not needed to take all this back. `passes`: at most so often through all of them.
    """
    for _ in range(passes):
        count = _by_cost(p, s)
        removed = 0
        for at in range(count):
            pair = s.order[at]
            if s.reg[LOG] * 8 > 7 * len(s.log):
                break
            t, i = pair // (p.n + 1), pair % (p.n + 1)
            if has(s, i, t) and without(p, s, t, i):
                removed += 1
            if forget:
                s.reg[LOG] = 0
        if removed == 0:
            break


@compiled
def _by_cost(p: Facts, s: State) -> int:
    """The copies in `order`, the dearest first; how many."""
    count = list_pairs(p, s, s.order)
    count = min(count, len(s.scratch))
    most = 0
    for at in range(count):
        most = max(most, p.cost[s.order[at] % (p.n + 1)])
    unit = most // (1 << 32) + 1
    for at in range(count):
        cost = (most - p.cost[s.order[at] % (p.n + 1)]) // unit
        s.scratch[at] = cost * (1 << 28) + at
    sort_keys(s.scratch, count)
    for at in range(count):
        s.scratch[at] = s.order[s.scratch[at] % (1 << 28)]
    for at in range(count):
        s.order[at] = s.scratch[at]
    return count


@compiled
def without(p: Facts, s: State, t: int, i: int) -> bool:
    """Remove the copy, and what only it used, if `over` does not grow by that."""
    mark, over = s.reg[LOG], s.reg[OVER]
    strip(p, s, t, i)
    settle(p, s)
    if s.reg[OVER] <= over:
        return True
    undo(p, s, mark)
    return False


@compiled
def strip(p: Facts, s: State, t: int, i: int) -> None:
    """Remove the copy, and the copies of its inputs that then have no use, and so on. To be settled."""
    stride = p.n + 1
    s.closure[0] = t * stride + i
    s.reg[CLOSURE] = 1
    while s.reg[CLOSURE] > 0:
        s.reg[CLOSURE] -= 1
        stage, op = s.closure[s.reg[CLOSURE]] // stride, s.closure[s.reg[CLOSURE]] % stride
        if not has(s, op, stage):
            continue
        remove(p, s, stage, op)
        for r in range(p.read_start[op], p.read_start[op + 1]):
            maker = p.maker[p.reads[r]]
            made = s.pool[s.at[maker] + below(s, maker, stage + 1) - 1]
            if made > maker and s.reg[CLOSURE] < len(s.closure) and _is_idle(p, s, made, maker):
                s.closure[s.reg[CLOSURE]] = made * stride + maker
                s.reg[CLOSURE] += 1


@compiled
def _is_idle(p: Facts, s: State, t: int, i: int) -> bool:
    """Whether nothing uses what operation i makes in stage t."""
    k = below(s, i, t)
    for v in range(p.make_start[i], p.make_start[i + 1]):
        until = s.pool[s.at[2 * p.n + 1 + v] + k]
        if until > t or used_in(p, s, v, t):
            return False
    return True
