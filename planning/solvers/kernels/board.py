"""The memory of the local search: one flat array of integers, the *board*, with the problem and one set of copies.

Layout:

    header    scalars, such as `board[EXTRA_COST]`, and for each part of the board the position of its first entry
    parts     tables, one after the other, with an entry for each operation, storage, stage, block or log record

A name in capitals is a position in the header. So `board[board[STORAGE_BYTES] + storage]` is the size of a storage. The
parts from COSTS to USES are the arrays of the same name of `Problem` (`problem.py`), which describes their entries. A
kernel that reads a table several times binds its start to a local variable first: after `sizes = board[STORAGE_BYTES]`,
the size is `board[sizes + storage]`.

The lists of operands and of uses are stored in compressed rows: the entries of all rows, one after the other, and the
board position at which each row starts. The accessors `operands_at`, `uses_at` and `results_of` return ranges over
them.

The board is a single array because numba passes each array as seven machine words: with forty arrays, calls would cost
more than their bodies. It is a numpy array if the kernels are compiled, and otherwise a list, which Python reads
faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Problem
from .compiled import kernel

Board = list[int]
Keys = list[float]
"""The scores of the candidates on the heap: cost per byte of removed overflow."""

BLOCK = 64
"""Number of stages in a block of `sqrt_blocks.py`."""
SIZE_CLASSES = 48
"""Number of size classes of rows (`rows.py`): a row of class c has room for 2 ** c entries."""

BUDGET_BYTES, OVERFLOW_BYTES, EXTRA_COST, IS_FULL, RANDOM_STATE = range(5)
"""Scalars of the search.

OVERFLOW_BYTES: the sum over all stages of weight * max(0, peak - budget).
EXTRA_COST: the cost of the copies.
IS_FULL: 1 if a part has no room left; no copies are added then.
RANDOM_STATE: the state of the generator of random numbers.
"""
LOG_LENGTH, PENDING_COUNT, DIRTY_COUNT, HEAP_LENGTH, MOVE_LENGTH, POOL_TOP, LAST_STAMP = range(5, 12)
"""Scalars with the number of used entries of LOG, PENDING_STAGES, DIRTY_BLOCKS, the heap and MOVE_OPERATIONS; with the
board position of the first entry of ROW_POOL that was never allocated; with the stamp of the last traversal."""
BEST_COST, BEST_COUNT = 12, 13
"""Scalars: the cost and the number of the copies in BEST_COPIES. BEST_COST is -1 if there are none."""
OPERATION_COUNT, EARLIEST_STAGE, STAGE_ROWS, LAST_USE_ROWS = range(14, 18)
"""Constants of the problem: the number n of operations; the first stage in which copies may run; the index of the first
row of stages, and of the first row of last uses (`rows.py`)."""

COSTS, INNER_BYTES, MAY_RUN_AGAIN, RESULT_START = range(18, 22)
"""By operation, as in `Problem`. RESULT_START has one more entry, for the end."""
OPERAND_START, OPERANDS = 22, 23
"""As in `Problem`, except that OPERAND_START has positions on the board."""
STORAGE_BYTES, IS_OUTPUT, MAKERS, USE_START, USES = range(24, 29)
"""By storage, as in `Problem`, except that USE_START has positions on the board."""
MINUS_LOG_SHARES = 29
"""-log of 1024 evenly spaced numbers between 0 and 1, in millionths, for the acceptance of worse plans."""

ROW_POOL, ROW_START, ROW_LENGTH, ROW_CAPACITY, FREE_PLACES = range(30, 35)
"""ROW_POOL: the entries of all rows. By row: the board position of its first entry, its length, its capacity. By size
class: the board position of the first free place, or -1; a free place has the position of the next one."""
STAGE_PEAK, STAGE_RISE, STAGE_WEIGHT, IS_PENDING, PENDING_STAGES = range(35, 40)
"""By stage: the peak bytes in it, less BLOCK_ADDED of its block; the part of these above the live bytes at its start;
its weight in the overflow; 1 if its STAGE_RISE must be recounted. PENDING_STAGES lists the latter."""
BLOCK_ADDED, BLOCK_MAX, BLOCK_MIN, BLOCK_WEIGHTED, BLOCK_WEIGHT = range(40, 45)
"""By block: bytes to be added to the peak of all its stages; the largest and the least peak in bytes; the weighted sum
of the peaks; the sum of the weights."""
BLOCK_OVERFLOW, BLOCK_OVER_WEIGHT, IS_DIRTY, DIRTY_BLOCKS = range(45, 49)
"""By block: its overflow in bytes; the weight of its stages above the budget; 1 if its fields must be recomputed.
DIRTY_BLOCKS lists the latter."""
LOG, STORAGE_STAMP, OPERATION_STAMP, MOVE_OPERATIONS, SCRATCH, ORDERED_COPIES = range(49, 55)
"""Workspace. LOG: the changes to undo, three entries each (`copy_moves.py`). Stamps: the last traversal that visited a
storage or an operation. MOVE_OPERATIONS: the operations of one move. SCRATCH: entries to sort. ORDERED_COPIES: copies,
as `list_copies` encodes them."""
HEAP_STORAGE, HEAP_STAGE, HEAP_VERSION, VALID_VERSION, BEST_COPIES = range(55, 60)
"""By candidate on the heap: its storage, its stage, its version. VALID_VERSION: by storage, the version of its valid
candidates. BEST_COPIES: the cheapest copies within the budget so far."""
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


def board_of(problem: Problem, earliest_stage: int | None = None) -> tuple[Board, Keys]:
    """Allocate the board for a problem, and the keys of its heap, as arrays, which compiled kernels take.

    `as_lists` converts them for plain kernels, and `reset` of `plain_step.py` initializes the state.

    Args:
        earliest_stage: The first stage in which copies may run; None for the first stage of the problem.
    """
    parts = {**_problem_parts(problem), **{part: _zeros(count) for part, count in _state_lengths(problem).items()}}
    assert list(parts) == list(range(FIRST_PART, HEADER)), "the parts are in the order of their indices"
    ends = HEADER + 1 + np.cumsum([len(entries) for entries in parts.values()])
    header = np.zeros(HEADER + 1, np.int64)
    header[FIRST_PART:] = [HEADER + 1, *ends]
    n = len(problem)
    header[OPERATION_COUNT], header[STAGE_ROWS], header[LAST_USE_ROWS] = n, n, 2 * n + 1
    header[EARLIEST_STAGE] = problem.earliest_stage if earliest_stage is None else earliest_stage
    # Rows of operands and of uses start at positions on the board.
    parts[OPERAND_START] = parts[OPERAND_START] + header[OPERANDS]
    parts[USE_START] = parts[USE_START] + header[USES]
    board: Any = np.concatenate([header, *parts.values()]).astype(np.int64)
    keys: Any = np.zeros(len(parts[HEAP_STORAGE]), np.float64)
    return board, keys


def as_lists(board: Board, keys: Keys) -> tuple[Board, Keys]:
    """Convert the board and the keys to lists, for plain kernels."""
    return np.asarray(board).tolist(), np.asarray(keys).tolist()


def as_arrays(board: Board, keys: Keys) -> tuple[Board, Keys]:
    """Convert the board and the keys to arrays, for compiled kernels."""
    arrays: Any = np.array(board, np.int64), np.array(keys, np.float64)
    return arrays


def _problem_parts(problem: Problem) -> dict[int, Any]:
    """Return the entries of the parts that describe the problem."""
    minus_log = np.round(-np.log((np.arange(1024) + 0.5) / 1024) * 1e6).astype(np.int64)
    return {
        COSTS: problem.costs,
        INNER_BYTES: problem.inner_bytes,
        MAY_RUN_AGAIN: problem.may_run_again,
        RESULT_START: problem.result_start,
        OPERAND_START: problem.operand_start,
        OPERANDS: problem.operands,
        STORAGE_BYTES: problem.storage_bytes,
        IS_OUTPUT: problem.is_output,
        MAKERS: problem.makers,
        USE_START: problem.use_start,
        USES: problem.uses,
        MINUS_LOG_SHARES: minus_log,
    }


def _state_lengths(problem: Problem) -> dict[int, int]:
    """Return the number of entries of the parts that hold the state.

    The lengths of the pool, the log, the heap and the lists of copies are limits: they grow linearly with the problem.
    """
    operations, storages, reads = len(problem), len(problem.storage_bytes), len(problem.operands)
    stages = operations + 1
    blocks, rows = (operations + BLOCK) // BLOCK + 1, operations + stages + storages
    copies, candidates = 16 * (operations + reads) + 4096, 6 * (reads + storages) + 4096
    return {
        ROW_POOL: 64 * (operations + storages) + min(200 * operations, 200_000) + 4096,
        **dict.fromkeys((ROW_START, ROW_LENGTH, ROW_CAPACITY), rows),
        FREE_PLACES: SIZE_CLASSES,
        STAGE_PEAK: blocks * BLOCK,
        STAGE_RISE: stages,
        STAGE_WEIGHT: blocks * BLOCK,
        **dict.fromkeys((IS_PENDING, PENDING_STAGES), stages),
        **dict.fromkeys(range(BLOCK_ADDED, DIRTY_BLOCKS + 1), blocks),
        LOG: 3 * (24 * operations + min(300 * operations, 300_000) + 4096),
        STORAGE_STAMP: storages,
        OPERATION_STAMP: operations,
        MOVE_OPERATIONS: operations + 64,
        **dict.fromkeys((SCRATCH, ORDERED_COPIES), copies),
        **dict.fromkeys((HEAP_STORAGE, HEAP_STAGE, HEAP_VERSION), candidates),
        VALID_VERSION: storages,
        BEST_COPIES: copies,
    }


def _zeros(count: int) -> Any:
    return np.zeros(count, np.int64)
