"""Add and remove single copies, with undo. Each change updates the live ranges, and the bytes of the affected stages.

A change affects only the instances of the operation's results around the stage, and the instances of its operands at
the stage. The bytes inside a stage are recounted for the stage of the copy. If the last use of an instance moves to
another stage, they are also recounted for the old and the new stage of this use.
"""

from __future__ import annotations

from .board import (
    BLOCK,
    COSTS,
    EXTRA_COST,
    INNER_BYTES,
    IS_PENDING,
    LAST_STAMP,
    LAST_USE_ROWS,
    LOG,
    LOG_LENGTH,
    MAKERS,
    OPERATION_COUNT,
    PENDING_COUNT,
    PENDING_STAGES,
    ROW_LENGTH,
    STAGE_PEAK,
    STAGE_RISE,
    STAGE_ROWS,
    STORAGE_BYTES,
    STORAGE_STAMP,
    Board,
    enqueue,
    operands_at,
    results_of,
    uses_at,
)
from .compiled import kernel
from .rows import contains, count_below, delete_entry, entry, insert_entry, last_use_in, set_entry
from .sqrt_blocks import add_bytes, mark_dirty, scan_dirty_blocks

ADDED, REMOVED, RISE = 0, 1, 2
"""The kinds of log records. Each record has three entries: either ADDED or REMOVED, the stage and the operation of a
copy; or RISE, a stage and its former STAGE_RISE in bytes."""


@kernel
def add_copy(board: Board, stage: int, operation: int) -> None:
    """Run an operation again in a stage in which it does not run yet."""
    _insert_copy(board, stage, operation)
    _append_to_log(board, ADDED, stage, operation)


@kernel
def remove_copy(board: Board, stage: int, operation: int) -> None:
    """Remove the copy of an operation in a stage."""
    _delete_copy(board, stage, operation)
    _append_to_log(board, REMOVED, stage, operation)


@kernel
def _append_to_log(board: Board, kind: int, stage: int, detail: int) -> None:
    """Append a record to the log. `detail`: the operation or, for the kind RISE, the previous value of STAGE_RISE."""
    length = board[LOG_LENGTH]
    position = board[LOG] + length
    board[position] = kind
    board[position + 1] = stage
    board[position + 2] = detail
    board[LOG_LENGTH] = length + 3


@kernel
def _insert_copy(board: Board, stage: int, operation: int) -> None:
    sizes, last_use_rows, stage_row = board[STORAGE_BYTES], board[LAST_USE_ROWS], board[STAGE_ROWS] + stage
    run = count_below(board, operation, stage)
    previous_stage = entry(board, operation, run - 1)
    insert_entry(board, operation, run, stage)
    insert_entry(board, stage_row, count_below(board, stage_row, operation), operation)
    for storage in results_of(board, operation):
        row = last_use_rows + storage
        end = entry(board, row, run - 1)
        if end < stage:
            insert_entry(board, row, run, stage)
            continue
        # The new instance serves the uses from `stage` on, so the previous instance dies at its last use before
        # `stage`.
        previous_end = last_use(board, storage, previous_stage, stage)
        set_entry(board, row, run - 1, previous_end)
        insert_entry(board, row, run, end)
        add_bytes(board, previous_end + 1, stage, -board[sizes + storage])
        _mark_pending(board, previous_end)
    makers = board[MAKERS]
    for position in operands_at(board, operation):
        operand = board[position]
        row, operand_run = last_use_rows + operand, count_below(board, board[makers + operand], stage + 1) - 1
        end = entry(board, row, operand_run)
        if end < stage:
            set_entry(board, row, operand_run, stage)
            add_bytes(board, end + 1, stage, board[sizes + operand])
            _mark_pending(board, end)
    _mark_pending(board, stage)
    board[EXTRA_COST] += board[board[COSTS] + operation]


@kernel
def _delete_copy(board: Board, stage: int, operation: int) -> None:
    sizes, last_use_rows, stage_row = board[STORAGE_BYTES], board[LAST_USE_ROWS], board[STAGE_ROWS] + stage
    run = count_below(board, operation, stage)
    for storage in results_of(board, operation):
        row = last_use_rows + storage
        end, previous_end = entry(board, row, run), entry(board, row, run - 1)
        delete_entry(board, row, run)
        if end > stage or is_used_in(board, storage, stage):
            # The previous instance serves the uses of the deleted one.
            set_entry(board, row, run - 1, end)
            add_bytes(board, previous_end + 1, stage, board[sizes + storage])
            _mark_pending(board, previous_end)
    delete_entry(board, operation, run)
    delete_entry(board, stage_row, count_below(board, stage_row, operation))
    makers = board[MAKERS]
    for position in operands_at(board, operation):
        operand = board[position]
        maker, row = board[makers + operand], last_use_rows + operand
        operand_run = count_below(board, maker, stage + 1) - 1
        if entry(board, row, operand_run) == stage:
            end = last_use(board, operand, entry(board, maker, operand_run), stage + 1)
            set_entry(board, row, operand_run, end)
            add_bytes(board, end + 1, stage, -board[sizes + operand])
            _mark_pending(board, end)
    _mark_pending(board, stage)
    board[EXTRA_COST] -= board[board[COSTS] + operation]


@kernel
def last_use(board: Board, storage: int, start: int, limit: int) -> int:
    """Return the last stage before `limit` in which an instance of a storage is used. For an instance without uses,
    return `start`, the stage in which the instance is made."""
    latest = start
    for position in uses_at(board, storage):
        user = board[position]
        if user < limit:
            latest = max(latest, entry(board, user, count_below(board, user, limit) - 1))
    return latest


@kernel
def is_used_in(board: Board, storage: int, stage: int) -> bool:
    """Return whether a storage is used in a stage."""
    for position in uses_at(board, storage):
        if board[position] <= stage and contains(board, board[position], stage):
            return True
    return False


@kernel
def _mark_pending(board: Board, stage: int) -> None:
    """Mark a stage as pending, so that `settle` recounts the bytes inside it."""
    enqueue(board, PENDING_STAGES, PENDING_COUNT, IS_PENDING, stage)


@kernel
def settle(board: Board) -> None:
    """Recount the bytes inside the pending stages. Afterwards, `OVERFLOW_BYTES` is valid."""
    pending, is_pending, rises = board[PENDING_STAGES], board[IS_PENDING], board[STAGE_RISE]
    for index in range(board[PENDING_COUNT]):
        stage = board[pending + index]
        board[is_pending + stage] = 0
        rise = rise_in_stage(board, stage)
        if rise != board[rises + stage]:
            _append_to_log(board, RISE, stage, board[rises + stage])
            _set_rise(board, stage, rise)
    board[PENDING_COUNT] = 0
    scan_dirty_blocks(board)


@kernel
def _set_rise(board: Board, stage: int, rise: int) -> None:
    board[board[STAGE_PEAK] + stage] += rise - board[board[STAGE_RISE] + stage]
    board[board[STAGE_RISE] + stage] = rise
    mark_dirty(board, stage // BLOCK)


@kernel
def undo(board: Board, mark: int) -> None:
    """Undo the changes in the log from entry `mark` on. No stage may be pending before the call, and none is pending
    after it."""
    position, first = board[LOG] + board[LOG_LENGTH], board[LOG] + mark
    while position > first:
        position -= 3
        kind, stage, detail = board[position], board[position + 1], board[position + 2]
        if kind == RISE:
            _set_rise(board, stage, detail)
        elif kind == ADDED:
            _delete_copy(board, stage, detail)
        else:
            _insert_copy(board, stage, detail)
    # Undoing the RISE records has already restored the bytes inside the stages.
    pending, is_pending = board[PENDING_STAGES], board[IS_PENDING]
    for index in range(board[PENDING_COUNT]):
        board[is_pending + board[pending + index]] = 0
    board[PENDING_COUNT] = 0
    board[LOG_LENGTH] = mark
    scan_dirty_blocks(board)


@kernel
def rise_in_stage(board: Board, stage: int) -> int:
    """Return the maximum of the live bytes inside a stage, relative to its start.

    The stage is scanned once, backwards: first the operation of the stage (stage n has none), then the copies before
    it.
    """
    board[LAST_STAMP] += 1
    stamp, stamps, sizes = board[LAST_STAMP], board[STORAGE_STAMP], board[STORAGE_BYTES]
    stage_row, is_end = board[STAGE_ROWS] + stage, stage == board[OPERATION_COUNT]
    copies = board[board[ROW_LENGTH] + stage_row]
    if copies == 0 and is_end:
        return 0
    # The live bytes at the current point of the scan, relative to the end of the stage.
    live, most = 0, -(1 << 62)
    for index in range(copies - 1 if is_end else copies, -1, -1):
        operation = stage if index == copies else entry(board, stage_row, index)
        during = live + board[board[INNER_BYTES] + operation]
        for storage in results_of(board, operation):
            if board[stamps + storage] == stamp or last_use_in(board, storage, stage) > stage:
                live -= board[sizes + storage]
            else:
                during += board[sizes + storage]
        for position in operands_at(board, operation):
            operand = board[position]
            # A stamp marks a storage whose last use in the stage the scan has passed.
            if board[stamps + operand] != stamp and last_use_in(board, operand, stage) == stage:
                board[stamps + operand] = stamp
                live += board[sizes + operand]
                during += board[sizes + operand]
        most = max(most, during)
    return most - live
