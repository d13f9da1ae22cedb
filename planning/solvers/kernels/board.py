"""The data of the local search: one flat array of integers, the *board*. It contains the problem and one set of copies.

Layout:

    header    scalars, such as `board[EXTRA_COST]`, and for each part of the board the position of its first entry
    parts     tables, one after the other, with an entry for each operation, storage, stage, block or log record

`board_of` in `problem_board.py` allocates the board of a problem. A name in capitals is a position in the header. For
example, `board[board[STORAGE_BYTES] + storage]` is the size of a storage. The parts from COSTS to USES are the arrays
with the same names in `Problem` (`problem.py`), which describes their entries. A kernel that reads a table several
times first binds its start to a local variable: after `sizes = board[STORAGE_BYTES]`, the size is `board[sizes +
storage]`.

The lists of operands and of uses are stored as compressed rows: the entries of all rows, one after the other, and the
board position at which each row starts. The accessors `operands_at`, `uses_at` and `results_of` return ranges over a
row.

The board is a single array because numba passes each array as seven machine words: with forty arrays, a call would cost
more than the body of the function. The board is a numpy array for compiled kernels, and a list for plain kernels,
because Python reads lists faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import kernel

Board = list[int]
Keys = list[float]
"""The scores of the candidates on the heap, as cost per byte of removed overflow."""

BLOCK = 64
"""Number of stages in a block; see `sqrt_blocks.py`."""
SIZE_CLASSES = 48
"""Number of size classes of rows (`rows.py`). A row of class c has room for 2 ** c entries."""

BUDGET_BYTES, OVERFLOW_BYTES, EXTRA_COST, IS_FULL, RANDOM_STATE = range(5)
"""Scalars of the search.

- OVERFLOW_BYTES: the sum of weight * max(0, peak - budget) over all stages.
- EXTRA_COST: the cost of the copies.
- IS_FULL: 1 if a part has no room left, so that no further copies are added.
- RANDOM_STATE: the state of the random number generator.
"""
LOG_LENGTH, PENDING_COUNT, DIRTY_COUNT, HEAP_LENGTH, MOVE_LENGTH, POOL_TOP, LAST_STAMP = range(5, 12)
"""Scalars. The first five are the numbers of used entries of LOG, PENDING_STAGES, DIRTY_BLOCKS, the heap and
MOVE_OPERATIONS. POOL_TOP: the board position of the first entry of ROW_POOL that was never allocated. LAST_STAMP: the
stamp of the last traversal."""
BEST_COST, BEST_COUNT = 12, 13
"""Scalars: the cost and the number of the copies in BEST_COPIES. BEST_COST is -1 if no copies are recorded there."""
OPERATION_COUNT, EARLIEST_STAGE, STAGE_ROWS, LAST_USE_ROWS = range(14, 18)
"""Constants of the problem: the number n of operations; the first stage in which copies may run; the index of the first
row of stages; the index of the first row of last uses (`rows.py`)."""

COSTS, INNER_BYTES, MAY_RUN_AGAIN, RESULT_START = range(18, 22)
"""By operation, as in `Problem`. RESULT_START has one more entry, for the end."""
OPERAND_START, OPERANDS = 22, 23
"""As in `Problem`, except that OPERAND_START has positions on the board."""
STORAGE_BYTES, IS_OUTPUT, MAKERS, USE_START, USES = range(24, 29)
"""By storage, as in `Problem`, except that USE_START has positions on the board."""
MINUS_LOG_SHARES = 29
"""Values of -log(x) for 1024 evenly spaced x between 0 and 1, in millionths. They determine whether worse plans are
accepted."""

ROW_POOL, ROW_START, ROW_LENGTH, ROW_CAPACITY, FREE_PLACES = range(30, 35)
"""ROW_POOL: the entries of all rows. ROW_START, ROW_LENGTH, ROW_CAPACITY: for each row, the board position of its first
entry, its length, and its capacity. FREE_PLACES: for each size class, the board position of the first free place, or
-1. Each free place contains the position of the next one."""
STAGE_PEAK, STAGE_RISE, STAGE_WEIGHT, IS_PENDING, PENDING_STAGES = range(35, 40)
"""STAGE_PEAK: for each stage, its peak bytes minus BLOCK_ADDED of its block. STAGE_RISE: the difference between the
peak and the live bytes at the start of the stage. STAGE_WEIGHT: the weight of the stage in the overflow. IS_PENDING: 1
if STAGE_RISE must be recounted. PENDING_STAGES: the list of the stages to recount."""
BLOCK_ADDED, BLOCK_MAX, BLOCK_MIN, BLOCK_WEIGHTED, BLOCK_WEIGHT = range(40, 45)
"""For each block: the bytes to add to the peak of all its stages; the largest and the smallest peak in bytes; the
weighted sum of the peaks; the sum of the weights."""
BLOCK_OVERFLOW, BLOCK_OVER_WEIGHT, IS_DIRTY, DIRTY_BLOCKS = range(45, 49)
"""For each block: its overflow in bytes; the total weight of its stages above the budget; 1 if its fields must be
recomputed. DIRTY_BLOCKS: the list of the blocks to recompute."""
LOG, STORAGE_STAMP, OPERATION_STAMP, MOVE_OPERATIONS, SCRATCH, ORDERED_COPIES = range(49, 55)
"""Workspace. LOG: the changes to undo, with three entries for each change (`copy_moves.py`). STORAGE_STAMP,
OPERATION_STAMP: the last traversal that visited the storage or the operation. MOVE_OPERATIONS: the operations of one
move. SCRATCH: entries to sort. ORDERED_COPIES: copies, as encoded by `list_copies`."""
HEAP_STORAGE, HEAP_STAGE, HEAP_VERSION, VALID_VERSION, BEST_COPIES = range(55, 60)
"""HEAP_STORAGE, HEAP_STAGE, HEAP_VERSION: for each candidate on the heap, its storage, its stage and its version.
VALID_VERSION: for each storage, the version of its valid candidates. BEST_COPIES: the cheapest copies within the budget
so far."""
HEADER = 60
"""The number of scalars and parts; the header has one more entry, for the end of the board."""
FIRST_PART = COSTS


@kernel
def length_of(board: Board, part: int) -> int:
    """Return the number of entries of a part."""
    return board[part + 1] - board[part]


@kernel
def operands_at(board: Board, operation: int) -> range:
    """Return the board positions of the storages that an operation reads."""
    row = board[OPERAND_START] + operation
    return range(board[row], board[row + 1])


@kernel
def results_of(board: Board, operation: int) -> range:
    """Return the storages that an operation makes."""
    row = board[RESULT_START] + operation
    return range(board[row], board[row + 1])


@kernel
def uses_at(board: Board, storage: int) -> range:
    """Return the board positions of the operations that read a storage."""
    row = board[USE_START] + storage
    return range(board[row], board[row + 1])


@kernel
def enqueue(board: Board, queue: int, length: int, is_queued: int, entry: int) -> None:
    """Append an entry to a queue, unless the queue contains it.

    `queue`, `length` and `is_queued`: the indices of the scalars with the position of the queue, its length, and the
    position of the flags of its entries.
    """
    if board[board[is_queued] + entry] == 0:
        board[board[is_queued] + entry] = 1
        board[board[queue] + board[length]] = entry
        board[length] += 1


def as_lists(board: Board, keys: Keys) -> tuple[Board, Keys]:
    """Convert the board and the keys to lists, for plain kernels."""
    return np.asarray(board).tolist(), np.asarray(keys).tolist()


def as_arrays(board: Board, keys: Keys) -> tuple[Board, Keys]:
    """Convert the board and the keys to arrays, for compiled kernels."""
    arrays: Any = np.array(board, np.int64), np.array(keys, np.float64)
    return arrays
