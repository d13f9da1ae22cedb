"""Initialize the state of the search with the plain step: every operation runs once, and every live range ends at the
last use. The stage of an operation lasts from right before the operation to its end."""

from __future__ import annotations

from .board import (
    BLOCK_ADDED,
    BLOCK_OVERFLOW,
    BUDGET_BYTES,
    DIRTY_COUNT,
    EXTRA_COST,
    FREE_PLACES,
    IS_FULL,
    IS_OUTPUT,
    IS_PENDING,
    LAST_USE_ROWS,
    LOG_LENGTH,
    MAKERS,
    OPERATION_COUNT,
    OVERFLOW_BYTES,
    PENDING_COUNT,
    POOL_TOP,
    ROW_CAPACITY,
    ROW_LENGTH,
    ROW_POOL,
    ROW_START,
    SIZE_CLASSES,
    STAGE_PEAK,
    STAGE_RISE,
    STAGE_WEIGHT,
    STORAGE_BYTES,
    Board,
    length_of,
)
from .compiled import kernel
from .copy_moves import last_use, rise_in_stage
from .sqrt_blocks import scan_block


@kernel
def reset(board: Board, budget: int) -> None:
    """Set the state to the plain step, without copies. `budget`: the budget in bytes."""
    n = board[OPERATION_COUNT]
    storages = length_of(board, STORAGE_BYTES)
    for scalar in (OVERFLOW_BYTES, EXTRA_COST, LOG_LENGTH, PENDING_COUNT, DIRTY_COUNT, IS_FULL):
        board[scalar] = 0
    board[BUDGET_BYTES] = budget
    board[POOL_TOP] = board[ROW_POOL]
    for size_class in range(SIZE_CLASSES):
        board[board[FREE_PLACES] + size_class] = -1
    for row in range(board[LAST_USE_ROWS] + storages):
        board[board[ROW_START] + row] = 0
        board[board[ROW_LENGTH] + row] = 0
        board[board[ROW_CAPACITY] + row] = 0
    for operation in range(n):
        _write_row(board, operation, operation)
    for stage in range(length_of(board, STAGE_WEIGHT)):
        board[board[STAGE_WEIGHT] + stage] = 1 if stage <= n else 0
        board[board[STAGE_PEAK] + stage] = 0
    for storage in range(storages):
        maker = board[board[MAKERS] + storage]
        end = n + 1 if board[board[IS_OUTPUT] + storage] == 1 else last_use(board, storage, maker, n + 1)
        _write_row(board, board[LAST_USE_ROWS] + storage, end)
        _add_live_range(board, maker + 1, min(end, n), board[board[STORAGE_BYTES] + storage])
    _sum_up(board)


@kernel
def _write_row(board: Board, row: int, value: int) -> None:
    """Allocate an empty row, and write its only entry."""
    board[board[ROW_START] + row] = board[POOL_TOP]
    board[board[ROW_CAPACITY] + row] = 2
    board[board[ROW_LENGTH] + row] = 1
    board[board[POOL_TOP]] = value
    board[POOL_TOP] += 2


@kernel
def _add_live_range(board: Board, first: int, last: int, size: int) -> None:
    """Add the bytes of a live range to STAGE_PEAK as differences between stages. `_sum_up` accumulates these
    differences."""
    if first <= last:
        board[board[STAGE_PEAK] + first] += size
        if last + 1 < length_of(board, STAGE_PEAK):
            board[board[STAGE_PEAK] + last + 1] -= size


@kernel
def _sum_up(board: Board) -> None:
    """Accumulate the differences, add the bytes inside each stage, and compute the fields of all blocks."""
    live, peaks = 0, board[STAGE_PEAK]
    for stage in range(length_of(board, STAGE_PEAK)):
        live += board[peaks + stage]
        board[peaks + stage] = live
    for stage in range(board[OPERATION_COUNT] + 1):
        rise = rise_in_stage(board, stage)
        board[board[IS_PENDING] + stage] = 0
        board[board[STAGE_RISE] + stage] = rise
        board[peaks + stage] += rise
    for block in range(length_of(board, BLOCK_ADDED)):
        board[board[BLOCK_ADDED] + block] = 0
        board[board[BLOCK_OVERFLOW] + block] = 0
        scan_block(board, block)
