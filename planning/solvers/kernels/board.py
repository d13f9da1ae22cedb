"""What the search knows: the problem, and the state for one set of copies, as flat arrays.

The arrays are numpy's where the loops are compiled, and lists, which Python reads faster, where they are not.

Rows, one pool for all (`rows.py`): row i < n has the stages in which operation i runs, in order, its own among them;
row n + t has the copies of stage t, 0 … n; row 2 n + 1 + v the stage of the last use of each instance of storage v, one
for each entry of its maker's row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..problem import Problem
from .compiled import PATH

BLOCK = 64
"""Stages in a block of `blocks.py`."""
BUDGET, OVER, COST, PAIRS, LOG, PENDING, DIRTY, STAMP, TOP, SEED, HEAP, FULL, CLOSURE, SAVED, MOVES, BEST = range(16)
"""Fields of `State.reg`. OVER: the overflow, by the weights of the stages. BEST: the cost of the copies in `saved`. LOG, PENDING, DIRTY, HEAP, CLOSURE, SAVED:
how much of an array is in use. TOP: where the pool is free. FULL: something is, and copies are no longer added."""
CLASSES = 48


class Facts(NamedTuple):
    """The problem; `Problem` explains the fields."""

    n: int
    earliest: int
    cost: list[int]
    inner: list[int]
    read_start: list[int]
    reads: list[int]
    make_start: list[int]
    sizes: list[int]
    output: list[int]
    again: list[int]
    maker: list[int]
    user_start: list[int]
    users: list[int]


class State(NamedTuple):
    """`at`, `length`, `room` of each row in `pool`; `free`: by size, the first pool entry that was given back.

    By stage: `alive`, the most bytes alive in it, less `lazy` of its block; `local`, how much of that is beyond what is
    alive at its start; `weight`; `pending`, whether `local` is to be counted again. By block: `lazy`, `most`, `least`
    bytes, `weighted` sum of bytes, `weights`, `over` and `over_weight` (weights of what is above the budget), `dirty`.

    `log`: what was done, three entries each: kind, stage, operation or former value. `mark`: by storage, a stamp.
    `seen`: by operation, a stamp. `heap_*`: candidates; `version`: by storage, which of them still hold.
    """

    reg: list[int]
    pool: list[int]
    at: list[int]
    length: list[int]
    room: list[int]
    free: list[int]
    alive: list[int]
    local: list[int]
    weight: list[int]
    pending: list[int]
    pending_list: list[int]
    lazy: list[int]
    most: list[int]
    least: list[int]
    weighted: list[int]
    weights: list[int]
    over: list[int]
    over_weight: list[int]
    dirty: list[int]
    dirty_list: list[int]
    log: list[int]
    mark: list[int]
    seen: list[int]
    closure: list[int]
    scratch: list[int]
    order: list[int]
    heap_key: list[float]
    heap_value: list[int]
    heap_stage: list[int]
    heap_version: list[int]
    version: list[int]
    saved: list[int]
    minus_log: list[float]


def facts_of(problem: Problem, earliest: int | None = None) -> Facts:
    """`earliest`: the first stage in which copies may run, where it is not the problem's."""
    return Facts(
        len(problem),
        problem.earliest if earliest is None else earliest,
        _array(problem.costs),
        _array(problem.inner),
        _array(problem.read_start),
        _array(problem.reads),
        _array(problem.make_start),
        _array(problem.sizes),
        _array(problem.output),
        _array(problem.again),
        _array(problem.maker),
        _array(problem.user_start),
        _array(problem.users),
    )


def empty_state(problem: Problem) -> State:
    """Room for a search on the problem; `reset` of `moves.py` fills it."""
    n, m, reads = len(problem), len(problem.sizes), len(problem.reads)
    blocks, rows = (n + BLOCK) // BLOCK + 1, 2 * n + 1 + m
    pool = 64 * (n + m) + 200_000
    heap = 6 * (reads + m) + 4096
    scratch = 16 * (n + reads) + 4096
    minus_log = [float(x) for x in -np.log((np.arange(1024) + 0.5) / 1024)]
    return State(
        reg=_zeros(16),
        pool=_zeros(pool),
        at=_zeros(rows),
        length=_zeros(rows),
        room=_zeros(rows),
        free=_zeros(CLASSES),
        alive=_zeros(blocks * BLOCK),
        local=_zeros(n + 1),
        weight=_zeros(blocks * BLOCK),
        pending=_zeros(n + 1),
        pending_list=_zeros(n + 1),
        lazy=_zeros(blocks),
        most=_zeros(blocks),
        least=_zeros(blocks),
        weighted=_zeros(blocks),
        weights=_zeros(blocks),
        over=_zeros(blocks),
        over_weight=_zeros(blocks),
        dirty=_zeros(blocks),
        dirty_list=_zeros(blocks),
        log=_zeros(3 * (24 * n + 300_000)),
        mark=_zeros(m),
        seen=_zeros(n),
        closure=_zeros(n + 64),
        scratch=_zeros(scratch),
        order=_zeros(scratch),
        heap_key=_floats(heap),
        heap_value=_zeros(heap),
        heap_stage=_zeros(heap),
        heap_version=_zeros(heap),
        version=_zeros(m),
        saved=_zeros(scratch),
        minus_log=_floats(minus_log),
    )


def _array(values: Any) -> list[int]:
    return values.tolist() if PATH == "plain" else np.ascontiguousarray(values, np.int64)


def _zeros(count: int) -> list[int]:
    return [0] * count if PATH == "plain" else _array(np.zeros(count, np.int64))


def _floats(values: int | Sequence[float]) -> list[float]:
    listed = [0.0] * values if isinstance(values, int) else list(values)
    found: Any = listed if PATH == "plain" else np.array(listed, np.float64)
    return found
