"""Reverse delete: remove copies, the most expensive first, while the overflow does not grow.

Reverse delete always follows the greedy search, because copies that the search adds late often make earlier copies
unnecessary.
"""

from __future__ import annotations

from .board import (
    COSTS,
    LAST_USE_ROWS,
    LOG,
    LOG_LENGTH,
    MAKERS,
    MOVE_LENGTH,
    MOVE_OPERATIONS,
    OPERATION_COUNT,
    ORDERED_COPIES,
    OVERFLOW_BYTES,
    SCRATCH,
    Board,
    length_of,
    operands_at,
    results_of,
)
from .compiled import kernel
from .copy_lists import list_copies
from .copy_moves import is_used_in, remove_copy, settle, undo
from .heap import sort_entries
from .rows import contains, count_below, entry

INDEX_BITS, COST_BITS = 28, 32
"""The bits of a sort key for the index of a copy, and for its cost. A cost that needs more bits is scaled down."""


@kernel
def reverse_delete(board: Board, discards_log: bool, passes: int) -> None:
    """Remove copies in order of decreasing cost, while the overflow does not grow. With each copy, also remove the
    copies that become unused.

    Args:
        discards_log: Whether to discard the log. This is possible if nothing will be undone.
        passes: The maximum number of passes over all copies.
    """
    stride, ordered = board[OPERATION_COUNT] + 1, board[ORDERED_COPIES]
    for _ in range(passes):
        removed = 0
        for index in range(_list_by_cost(board)):
            if board[LOG_LENGTH] * 8 > 7 * length_of(board, LOG):
                break
            stage, operation = divmod(board[ordered + index], stride)
            if contains(board, operation, stage) and _try_to_remove(board, stage, operation):
                removed += 1
            if discards_log:
                board[LOG_LENGTH] = 0
        if removed == 0:
            break


@kernel
def _list_by_cost(board: Board) -> int:
    """Write the copies to ORDERED_COPIES, the most expensive first. Returns their number."""
    costs, stride = board[COSTS], board[OPERATION_COUNT] + 1
    ordered, scratch = board[ORDERED_COPIES], board[SCRATCH]
    count = min(list_copies(board, ORDERED_COPIES), length_of(board, SCRATCH))
    most = 0
    for index in range(count):
        most = max(most, board[costs + board[ordered + index] % stride])
    unit = (most >> COST_BITS) + 1
    for index in range(count):
        rank = (most - board[costs + board[ordered + index] % stride]) // unit
        board[scratch + index] = (rank << INDEX_BITS) + index
    sort_entries(board, scratch, count)
    for index in range(count):
        board[scratch + index] = board[ordered + board[scratch + index] % (1 << INDEX_BITS)]
    for index in range(count):
        board[ordered + index] = board[scratch + index]
    return count


@kernel
def _try_to_remove(board: Board, stage: int, operation: int) -> bool:
    """Remove the copy, and the copies that become unused, unless the overflow grows. Returns whether the copy was
    removed."""
    mark, overflow = board[LOG_LENGTH], board[OVERFLOW_BYTES]
    _remove_with_operands(board, stage, operation)
    settle(board)
    if board[OVERFLOW_BYTES] <= overflow:
        return True
    undo(board, mark)
    return False


@kernel
def _remove_with_operands(board: Board, stage: int, operation: int) -> None:
    """Remove the copy, and recursively the copies of its operands that have no other uses. The caller must call
    `settle`."""
    stride, stack, makers = board[OPERATION_COUNT] + 1, board[MOVE_OPERATIONS], board[MAKERS]
    board[stack] = stage * stride + operation
    board[MOVE_LENGTH] = 1
    while board[MOVE_LENGTH] > 0:
        board[MOVE_LENGTH] -= 1
        reading_stage, reader = divmod(board[stack + board[MOVE_LENGTH]], stride)
        if not contains(board, reader, reading_stage):
            continue
        remove_copy(board, reading_stage, reader)
        for position in operands_at(board, reader):
            maker = board[makers + board[position]]
            maker_stage = entry(board, maker, count_below(board, maker, reading_stage + 1) - 1)
            has_room = board[MOVE_LENGTH] < length_of(board, MOVE_OPERATIONS)
            if maker_stage > maker and has_room and _is_unused(board, maker_stage, maker):
                board[stack + board[MOVE_LENGTH]] = maker_stage * stride + maker
                board[MOVE_LENGTH] += 1


@kernel
def _is_unused(board: Board, stage: int, operation: int) -> bool:
    run = count_below(board, operation, stage)
    for storage in results_of(board, operation):
        end = entry(board, board[LAST_USE_ROWS] + storage, run)
        if end > stage or is_used_in(board, storage, stage):
            return False
    return True
