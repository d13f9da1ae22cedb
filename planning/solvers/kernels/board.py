"""What the search knows, the problem and the state for one set of copies: the board, one flat row of whole numbers.

Its first entries are numbers, `m[COST]`; then one entry for each of its parts says where that part begins, so that
`m[m[SIZES] + v]` is the size of storage v. One array, since compiled functions are handed each array as seven words:
with forty of them calls cost more than what they do. It is numpy's where the loops are compiled, and a list, which
Python reads faster, where they are not.

Rows, one pool for all (`rows.py`): row i < n has the stages in which operation i runs, in order, its own among them;
row n + t has the copies of stage t, 0 … n; row 2 n + 1 + v the stage of the last use of each instance of storage v, one
for each entry of its maker's row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Problem
from .compiled import PATH, compiled

Board = list[int]
Keys = list[float]
"""The scores of the candidates on the heap."""

BLOCK = 64
"""Stages in a block of `blocks.py`."""
CLASSES = 48
"""Sizes of rows, as powers of two."""

BUDGET, OVER, COST, PAIRS, LOG, PENDING, DIRTY, STAMP, TOP, SEED, HEAP, FULL, CLOSURE, SAVED, MOVES, BEST = range(16)
"""Numbers. OVER: the overflow, by the weights of the stages. COST, PAIRS: of the copies. BEST: the cost of those in
`KEPT`. LOG, PENDING, DIRTY, HEAP, CLOSURE, SAVED: how much of a part is in use. TOP: where the pool is free. STAMP:
the last one given. FULL: something is, and copies are no longer added."""
N, EARLIEST = 16, 17
"""How many operations there are, and the first stage in which copies may run."""

FACTS = range(18, 30)
COSTS, INNER, READ_START, READS, MAKE_START, SIZES, OUTPUT, MAY_AGAIN, MAKER, USER_START, USERS, MINUS_LOG = FACTS
"""The problem, as `Problem` explains it. MINUS_LOG: of evenly spread shares, in millionths."""
POOL, ROW_AT, ROW_LENGTH, ROW_ROOM, FREE = range(30, 35)
"""Of each row: where on the board it begins, and how long it is and may become. FREE: by size, the first place that
was given back."""
ALIVE, LOCALS, WEIGHT, IS_PENDING, PENDING_LIST = range(35, 40)
"""By stage: ALIVE, the most bytes alive in it, less LAZY of its block; LOCALS, how much of that is beyond what is alive
at its start; IS_PENDING, whether that is to be counted again."""
LAZY, MOST, LEAST, WEIGHTED, WEIGHTS, BLOCK_OVER, OVER_WEIGHT, IS_DIRTY, DIRTY_LIST = range(40, 49)
"""By block: LAZY, a change of all its stages; MOST and LEAST bytes; WEIGHTED sum of bytes, sum of WEIGHTS; BLOCK_OVER,
the overflow, and OVER_WEIGHT, the weights of what is above the budget."""
LOGGED, MARKS, SEEN, CLOSED, SCRATCH, ORDERED = range(49, 55)
"""LOGGED: what was done, three entries each: kind, stage, operation or former value. MARKS: by storage, SEEN: by
operation, a stamp. CLOSED: what runs again together. SCRATCH and ORDERED: room to sort."""
HEAP_VALUE, HEAP_STAGE, HEAP_VERSION, VERSION, KEPT = range(55, 60)
"""Candidates; by storage, which VERSION of them still holds. KEPT: the best copies."""
END = 60


@compiled
def space(m: Board, part: int) -> int:
    """How many entries a part has."""
    return m[part + 1] - m[part]


def board_of(problem: Problem, earliest: int | None = None) -> tuple[Board, Keys]:
    """Room for a search on the problem; `reset` of `start.py` fills it. `earliest`: the first stage in which copies may
    run, where it is not the problem's."""
    parts = [*_facts(problem), *map(_zeros, _rooms(problem))]
    assert len(parts) == END - FACTS.start, "each part has a place"
    starts = END + 1 + np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    head = np.zeros(END + 1, np.int64)
    head[N], head[EARLIEST] = len(problem), problem.earliest if earliest is None else earliest
    head[FACTS.start : END + 1] = starts
    board: Any = np.concatenate([head, *parts]).astype(np.int64)
    keys: Any = np.zeros(len(parts[HEAP_VALUE - FACTS.start]), np.float64)
    return (board.tolist(), keys.tolist()) if PATH == "plain" else (board, keys)


def _facts(problem: Problem) -> list[Any]:
    """In the order of their names."""
    minus_log = np.round(-np.log((np.arange(1024) + 0.5) / 1024) * 1e6).astype(np.int64)
    return [
        problem.costs,
        problem.inner,
        problem.read_start,
        problem.reads,
        problem.make_start,
        problem.sizes,
        problem.output,
        problem.again,
        problem.maker,
        problem.user_start,
        problem.users,
        minus_log,
    ]


def _rooms(problem: Problem) -> list[int]:
    """How many entries each part of the state has, in the order of their names."""
    n, m, reads = len(problem), len(problem.sizes), len(problem.reads)
    blocks, rows = (n + BLOCK) // BLOCK + 1, 2 * n + 1 + m
    scratch, heap = 16 * (n + reads) + 4096, 6 * (reads + m) + 4096
    pool = 64 * (n + m) + min(200 * n, 200_000) + 4096
    by_row = [pool, rows, rows, rows, CLASSES]
    by_stage = [blocks * BLOCK, n + 1, blocks * BLOCK, n + 1, n + 1]
    to_work_with = [3 * (24 * n + min(300 * n, 300_000) + 4096), m, n, n + 64, scratch, scratch]
    return [*by_row, *by_stage, *[blocks] * 9, *to_work_with, heap, heap, heap, m, scratch]


def _zeros(count: int) -> Any:
    return np.zeros(count, np.int64)
