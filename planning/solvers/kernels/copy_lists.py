"""Add a list of copies to the state that the board stores, and list the copies of this state. A copy is an operation
that is rerun in stage t, right before operation t."""

from __future__ import annotations

from .board import (
    IS_FULL,
    LOG,
    LOG_LENGTH,
    OPERATION_COUNT,
    ROW_LENGTH,
    STAGE_ROWS,
    Board,
    length_of,
)
from .compiled import kernel
from .copy_moves import add_copy, settle
from .rows import contains, entry


@kernel
def add_copies(board: Board, stages: list[int], operations: list[int]) -> None:
    """Add copies, given by their stages and operations. Existing copies are skipped."""
    for index in range(len(stages)):
        stage, operation = stages[index], operations[index]
        if board[IS_FULL] == 0 and not contains(board, operation, stage):
            add_copy(board, stage, operation)
            if board[LOG_LENGTH] * 2 > length_of(board, LOG):
                settle(board)
                board[LOG_LENGTH] = 0
    settle(board)
    board[LOG_LENGTH] = 0


@kernel
def list_copies(board: Board, part: int) -> int:
    """Write the copies to a part of the board until it is full. Return the number of copies written.

    A copy is encoded as stage * (n + 1) + operation. The copies are sorted by stage and operation.
    """
    n = board[OPERATION_COUNT]
    count = 0
    start = board[part]
    room = length_of(board, part)
    for stage in range(n + 1):
        row = board[STAGE_ROWS] + stage
        for index in range(min(board[board[ROW_LENGTH] + row], room - count)):
            board[start + count] = stage * (n + 1) + entry(board, row, index)
            count += 1
    return count
