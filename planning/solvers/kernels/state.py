"""The state of the search in one array, with sorting, a heap and random numbers on it, and rows of pools.

The board: the data of the search, the problem and the state for one set of copies, in one flat array of integers.

The first entries are scalars, `m[COST]`; then one entry per part with the start of that part, so that `m[m[SIZES] + v]`
is the size of storage v. A single array, since numba passes each array as seven words: with forty arrays calls would
cost more than their bodies. A numpy array if the loops are compiled, and a list, which Python reads faster, if not.

Rows, in one pool (`rows.py`): row i < n has the stages in which operation i runs, in order, including its own; row
n + t has the copies of stage t, 0 … n; row 2 n + 1 + v has the stage of the last use of each instance of storage v, one
for each entry of the row of its maker.

A row that exceeds its capacity moves to a place of twice the size; its old place goes to the free list of its size.
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
"""For each row: its start on the board, its length and its capacity. FREE: for each size class the first free place."""
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


@compiled
def space(m: Board, part: int) -> int:
    """Return the number of entries of a part."""
    return m[part + 1] - m[part]


def board_of(problem: Problem, earliest: int | None = None) -> tuple[Board, Keys]:
    """Allocate the board for a problem; `reset` of `start.py` initialises it. `earliest`: the first stage in which
    copies may run; None for that of the problem."""
    parts = [*_facts(problem), *map(_zeros, _rooms(problem))]
    assert len(parts) == END - FACTS.start, "each part has a start"
    starts = END + 1 + np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    head = np.zeros(END + 1, np.int64)
    head[N], head[EARLIEST] = len(problem), problem.earliest if earliest is None else earliest
    head[FACTS.start : END + 1] = starts
    board: Any = np.concatenate([head, *parts]).astype(np.int64)
    keys: Any = np.zeros(len(parts[HEAP_VALUE - FACTS.start]), np.float64)
    return (board.tolist(), keys.tolist()) if PATH == "plain" else (board, keys)


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


MODULUS = 2147483647


@compiled
def draw(m: Board, count: int) -> int:
    """Return a number from 0 to count - 1 (Park and Miller's generator)."""
    m[SEED] = m[SEED] * 48271 % MODULUS
    return m[SEED] * count // MODULUS


@compiled
def sort_keys(m: Board, start: int, count: int) -> None:
    """Sort `count` entries from `start` on in place, smallest first, by Shell's sort (gaps of Tokuda)."""
    gap = 1
    while gap < count:
        gap = gap * 9 // 4 + 1
    while gap > 1:
        gap = gap * 4 // 9 if gap > 2 else 1
        gap = max(gap, 1)
        for at in range(gap, count):
            key, j = m[start + at], at
            while j >= gap and m[start + j - gap] > key:
                m[start + j] = m[start + j - gap]
                j -= gap
            m[start + j] = key


@compiled
def push(m: Board, keys: Keys, size: int, key: float, value: int, stage: int, version: int) -> None:
    """Push a candidate onto the heap of `size` entries; the smallest key is on top, ties by storage and stage."""
    at = size
    while at > 0:
        up = (at - 1) // 2
        if not _less(m, keys, up, key, value, stage):
            _copy(m, keys, at, up)
            at = up
        else:
            break
    keys[at] = key
    m[m[HEAP_VALUE] + at] = value
    m[m[HEAP_STAGE] + at] = stage
    m[m[HEAP_VERSION] + at] = version


@compiled
def _less(m: Board, keys: Keys, at: int, key: float, value: int, stage: int) -> bool:
    """Return whether the entry at `at` precedes or equals the given one."""
    if keys[at] != key:
        return keys[at] < key
    if m[m[HEAP_VALUE] + at] != value:
        return m[m[HEAP_VALUE] + at] < value
    return m[m[HEAP_STAGE] + at] <= stage


@compiled
def _copy(m: Board, keys: Keys, to: int, source: int) -> None:
    keys[to] = keys[source]
    m[m[HEAP_VALUE] + to] = m[m[HEAP_VALUE] + source]
    m[m[HEAP_STAGE] + to] = m[m[HEAP_STAGE] + source]
    m[m[HEAP_VERSION] + to] = m[m[HEAP_VERSION] + source]


@compiled
def sink(m: Board, keys: Keys, size: int) -> None:
    """Pop the top of a heap of `size` entries: the last entry takes its place and sinks."""
    last = size - 1
    key, value = keys[last], m[m[HEAP_VALUE] + last]
    stage, version = m[m[HEAP_STAGE] + last], m[m[HEAP_VERSION] + last]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= last:
            break
        if down + 1 < last and _less(m, keys, down + 1, keys[down], m[m[HEAP_VALUE] + down], m[m[HEAP_STAGE] + down]):
            down += 1
        if not _less(m, keys, down, key, value, stage):
            break
        _copy(m, keys, at, down)
        at = down
    keys[at] = key
    m[m[HEAP_VALUE] + at] = value
    m[m[HEAP_STAGE] + at] = stage
    m[m[HEAP_VERSION] + at] = version


@compiled
def below(m: Board, row: int, x: int) -> int:
    """Return the number of entries of the row that are less than x."""
    base, low, high = m[m[ROW_AT] + row], 0, m[m[ROW_LENGTH] + row]
    while low < high:
        middle = (low + high) // 2
        if m[base + middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def has(m: Board, row: int, x: int) -> bool:
    k = below(m, row, x)
    return k < m[m[ROW_LENGTH] + row] and m[m[m[ROW_AT] + row] + k] == x


@compiled
def put(m: Board, row: int, k: int, x: int) -> None:
    """Insert x as the k-th entry of the row."""
    length = m[m[ROW_LENGTH] + row]
    if length == m[m[ROW_ROOM] + row]:
        _grow(m, row)
    base = m[m[ROW_AT] + row]
    for j in range(length, k, -1):
        m[base + j] = m[base + j - 1]
    m[base + k] = x
    m[m[ROW_LENGTH] + row] = length + 1


@compiled
def take(m: Board, row: int, k: int) -> None:
    """Remove the k-th entry of the row."""
    base, length = m[m[ROW_AT] + row], m[m[ROW_LENGTH] + row] - 1
    for j in range(k, length):
        m[base + j] = m[base + j + 1]
    m[m[ROW_LENGTH] + row] = length


@compiled
def class_of(room: int) -> int:
    size_class = 0
    while 1 << size_class < room:
        size_class += 1
    return size_class


@compiled
def claim(m: Board, size_class: int) -> int:
    """Allocate a place in the pool for 2 ** size_class entries."""
    place = m[m[FREE] + size_class]
    if place >= 0:
        m[m[FREE] + size_class] = m[place]
        return place
    place = m[TOP]
    m[TOP] = place + (1 << size_class)
    if m[TOP] > m[ROW_POOL] + space(m, ROW_POOL) - space(m, ROW_POOL) // 4:
        m[FULL] = 1
    return place


@compiled
def _grow(m: Board, row: int) -> None:
    old, room, length = m[m[ROW_AT] + row], m[m[ROW_ROOM] + row], m[m[ROW_LENGTH] + row]
    size_class = class_of(2 * room) if room > 0 else 1
    new = claim(m, size_class)
    for j in range(length):
        m[new + j] = m[old + j]
    if room > 0:
        before = class_of(room)
        m[old] = m[m[FREE] + before]
        m[m[FREE] + before] = old
    m[m[ROW_AT] + row] = new
    m[m[ROW_ROOM] + row] = 1 << size_class
