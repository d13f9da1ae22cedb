"""Compound moves. A move runs an operation again in a stage, and also keeps its dead operands live longer or recomputes
them.

A move has one of three modes:

- HOLD: the dead operands are kept live longer.
- RECOMPUTE: the dead operands are recomputed, and recursively their own dead operands.
- CHEAPER: a dead operand is recomputed if that leaves less overflow than keeping it live.
"""

from __future__ import annotations

from .board import (
    IS_FULL,
    LAST_STAMP,
    LOG,
    LOG_LENGTH,
    MAKERS,
    MAY_RUN_AGAIN,
    MOVE_LENGTH,
    MOVE_OPERATIONS,
    OPERATION_STAMP,
    OVERFLOW_BYTES,
    Board,
    length_of,
    operands_at,
)
from .compiled import kernel
from .copy_moves import add_copy, settle, undo
from .heap import sort_entries
from .rows import contains, last_use_in

HOLD, RECOMPUTE, CHEAPER = 0, 1, 2
"""The modes of a move."""
MAX_MOVE_COPIES = 48
"""Maximum number of copies that one move adds. Without a limit, moves would become huge on irregular graphs."""


@kernel
def apply_move(board: Board, stage: int, operation: int, mode: int) -> bool:
    """Run the operation again in the stage, treat its dead operands according to `mode`, and recount the bytes. Returns
    whether an operand was dead; if no operand was dead, all modes give the same result. In mode CHEAPER, returns
    whether an operand was recomputed.

    If less than a quarter of the log is left, the board is only marked as full.
    """
    if board[IS_FULL] == 1 or board[LOG_LENGTH] * 4 > 3 * length_of(board, LOG):
        board[IS_FULL] = 1
        return False
    if mode == CHEAPER:
        return _apply_cheaper(board, stage, operation)
    has_dead_operand = _collect(board, stage, operation, MAX_MOVE_COPIES if mode == RECOMPUTE else 1)
    move = board[MOVE_OPERATIONS]
    for index in range(board[MOVE_LENGTH]):
        add_copy(board, stage, board[move + index])
    settle(board)
    return has_dead_operand


@kernel
def _is_dead(board: Board, storage: int, stage: int) -> bool:
    """Return whether a storage is dead in a stage and may be recomputed there."""
    maker = board[board[MAKERS] + storage]
    if board[board[MAY_RUN_AGAIN] + maker] == 0 or maker >= stage:
        return False
    return last_use_in(board, storage, stage) < stage


@kernel
def _collect(board: Board, stage: int, operation: int, most: int) -> bool:
    """Write the operation, and recursively the makers of dead operands, to MOVE_OPERATIONS in ascending order, at most
    `most` operations in total. Returns whether an operand was dead."""
    board[LAST_STAMP] += 1
    stamp, stamps, move, makers = board[LAST_STAMP], board[OPERATION_STAMP], board[MOVE_OPERATIONS], board[MAKERS]
    board[move] = operation
    board[stamps + operation] = stamp
    count, index, has_dead_operand = 1, 0, False
    while index < count:
        reader = board[move + index]
        index += 1
        for position in operands_at(board, reader):
            maker = board[makers + board[position]]
            if board[stamps + maker] != stamp and _is_dead(board, board[position], stage):
                has_dead_operand = True
                if count < most:
                    board[stamps + maker] = stamp
                    board[move + count] = maker
                    count += 1
    board[MOVE_LENGTH] = count
    if count > 1:
        sort_entries(board, move, count)
    return has_dead_operand


@kernel
def _apply_cheaper(board: Board, stage: int, operation: int) -> bool:
    """Apply the move in mode CHEAPER, with at most `MAX_MOVE_COPIES` copies. Operands are visited depth first, starting
    with the operands of the copy that was added last. Returns whether an operand was recomputed."""
    stack, makers = board[MOVE_OPERATIONS], board[MAKERS]
    board[stack] = operation
    count, added, is_first = 1, 0, True
    while count > 0 and added < MAX_MOVE_COPIES:
        count -= 1
        reader = board[stack + count]
        if contains(board, reader, stage):
            continue
        overflow, mark, count_before = board[OVERFLOW_BYTES], board[LOG_LENGTH], count
        for position in operands_at(board, reader):
            if count + 1 < length_of(board, MOVE_OPERATIONS) and _is_dead(board, board[position], stage):
                board[stack + count] = board[makers + board[position]]
                count += 1
        add_copy(board, stage, reader)
        settle(board)
        if not is_first and board[OVERFLOW_BYTES] >= overflow:
            undo(board, mark)
            count = count_before
        else:
            added += 1
        is_first = False
    return added > 1
