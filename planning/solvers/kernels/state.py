"""The state of the search in one flat array of integers, the *board*: the problem, and the state for one set of copies.

The first entries are scalars, such as `m[COST]`; then one entry per part with the start of that part, so that
`m[m[SIZES] + v]` is the size of storage v. It is a single array because numba passes each array as seven machine words:
with forty arrays, calls would cost more than their bodies. It is a numpy array if the loops are compiled, and otherwise
a list, which Python reads faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Problem
from .compiled import kernel

Board = list[int]
Keys = list[float]
"""The scores of the candidates on the heap."""

BLOCK = 64
"""Number of stages in a block of `sqrt_blocks.py`."""
CLASSES = 48
"""Number of size classes of rows, which are powers of two."""

BUDGET, OVER, COST, COPIED, LOG, PENDING, DIRTY, STAMP, TOP, SEED, HEAP, FULL, CLOSURE, SAVED, MOVES, BEST = range(16)
"""Scalars. OVER: the overflow, weighted by stage. COST, COPIED: cost and number of the copies. BEST: the cost of
the copies in `SAVED_PAIRS`. LOG, PENDING, DIRTY, HEAP, CLOSURE, SAVED: used entries of a part. TOP: the first free
entry of the pool. STAMP: the last stamp. SEED: the state of the random numbers. MOVES: the number of applied moves.
FULL: 1 if a part is full; no copies are added then."""
N, EARLIEST = 16, 17
"""The number of operations, and the first stage in which copies may run."""

FACTS = range(18, 30)
COSTS, INNER, READ_START, READS, MAKE_START, SIZES, IS_OUTPUT, MAY_AGAIN, MAKER, USER_START, USERS, MINUS_LOG = FACTS
"""The fields of `Problem`. MINUS_LOG: -log of evenly spaced shares, in millionths."""
ROW_POOL, ROW_AT, ROW_LENGTH, ROW_ROOM, FREE = range(30, 35)
"""ROW_AT, ROW_LENGTH, ROW_ROOM: for each row of `rows.py` its start on the board, its length and its capacity. FREE:
for each size class the first free place. ROW_POOL: the entries of all rows."""
ALIVE, LOCALS, WEIGHT, IS_PENDING, PENDING_LIST = range(35, 40)
"""Fields of a stage: ALIVE, the peak bytes in it, less LAZY of its block; LOCALS, the part of these above the live
bytes at its start; IS_PENDING, whether LOCALS must be recounted."""
LAZY, MOST, LEAST, WEIGHTED, WEIGHTS, BLOCK_OVER, OVER_WEIGHT, IS_DIRTY, DIRTY_LIST = range(40, 49)
"""Fields of a block: LAZY, a pending change of all its stages; MOST and LEAST bytes; WEIGHTED sum of bytes, sum of
WEIGHTS; BLOCK_OVER, the overflow, and OVER_WEIGHT, the weights of the stages above the budget; IS_DIRTY, whether these
must be recomputed."""
LOGGED, VISIT_STAMPS, SEEN, MOVE_OPERATIONS, SCRATCH, ORDERED = range(49, 55)
"""LOGGED: the log for undo, three entries each: kind, stage, operation or former value. VISIT_STAMPS: a stamp by
storage. SEEN: a stamp by operation. MOVE_OPERATIONS: the operations of one move. SCRATCH, ORDERED: space to sort."""
HEAP_VALUE, HEAP_STAGE, HEAP_VERSION, HEAP_VALID, SAVED_PAIRS = range(55, 60)
"""HEAP_…: the candidates on the heap. HEAP_VALID: by storage, the valid version of its candidates. SAVED_PAIRS: the
best copies."""
END = 60
"""The number of scalars and parts."""


@kernel
def space(m: Board, part: int) -> int:
    """Return the number of entries of a part."""
    return m[part + 1] - m[part]


def board_of(problem: Problem, earliest: int | None = None) -> tuple[Board, Keys]:
    """Allocate the board for a problem as arrays, which compiled kernels take; plain kernels take lists. `reset` of
    `initial.py` initializes it. `earliest`: the first stage in which copies may run; None for the first stage of the
    problem."""
    parts = [*_facts(problem), *map(_zeros, _rooms(problem))]
    assert len(parts) == END - FACTS.start, "each part has a start"
    starts = END + 1 + np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    head = np.zeros(END + 1, np.int64)
    head[N], head[EARLIEST] = len(problem), problem.earliest if earliest is None else earliest
    head[FACTS.start : END + 1] = starts
    board: Any = np.concatenate([head, *parts]).astype(np.int64)
    keys: Any = np.zeros(len(parts[HEAP_VALUE - FACTS.start]), np.float64)
    return board, keys


def as_lists(board: Board, keys: Keys) -> tuple[Board, Keys]:
    return np.asarray(board).tolist(), np.asarray(keys).tolist()


def as_arrays(board: Board, keys: Keys) -> tuple[Board, Keys]:
    arrays: Any = np.array(board, np.int64), np.array(keys, np.float64)
    return arrays


def _facts(problem: Problem) -> list[Any]:
    """Return the parts with the fields of the problem, in the order of FACTS."""
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
    """Return the number of entries of each part of the state, in the order of their names."""
    n, m, reads = len(problem), len(problem.sizes), len(problem.reads)
    blocks, rows = (n + BLOCK) // BLOCK + 1, 2 * n + 1 + m
    scratch, heap = 16 * (n + reads) + 4096, 6 * (reads + m) + 4096
    pool = 64 * (n + m) + min(200 * n, 200_000) + 4096
    by_row = [pool, rows, rows, rows, CLASSES]
    by_stage = [blocks * BLOCK, n + 1, blocks * BLOCK, n + 1, n + 1]
    workspace = [3 * (24 * n + min(300 * n, 300_000) + 4096), m, n, n + 64, scratch, scratch]
    return [*by_row, *by_stage, *[blocks] * 9, *workspace, heap, heap, heap, m, scratch]


def _zeros(count: int) -> Any:
    return np.zeros(count, np.int64)
